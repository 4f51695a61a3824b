"""Streams and segments: what a step of truncated back-propagation reads.

The training split is cut into `streams` contiguous lanes of equal length (the remainder is dropped). Step n reads the
next segment of every lane; at the end of the lanes training wraps to their beginning, and the state is emptied there.
Which bytes step n reads is a pure function of (seed, step), so there is no position to save.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Tokens = npt.NDArray[np.int64]
MOST_COUNTED = 5_000_000
"""Segments of drawn length are counted one by one; more than these would take minutes."""


@dataclass(frozen=True)
class Batch:
    """The tokens of one step."""

    tokens: Tokens
    """B × (T + 1): the symbol before the segment, and the segment."""
    fresh: bool
    """The segment begins the lanes: the state before it is empty."""

    @property
    def predictions(self) -> int:
        """How many bytes the step learns from."""
        return int(self.tokens.shape[0] * (self.tokens.shape[1] - 1))


class Segments:
    """Carried streams: step n continues where step n - 1 ended."""

    def __init__(
        self, text: Bytes, *, streams: int, segment: int, lengths: str = "fixed", seed: int = 0, start: int = 10
    ) -> None:
        self.length = len(text) // streams
        if self.length < 1:
            raise ValueError(f"{len(text)} bytes cannot make {streams} streams")
        self.lanes = text[: self.length * streams].reshape(streams, self.length)
        self.segment, self.lengths, self.seed, self.start = segment, lengths, seed, start
        self._step, self._place = 0, 0  # a memo of where step `_step` begins

    def at(self, step: int) -> Batch:
        """What step `step` (counted from 0) reads."""
        begin = self._begin(step)
        end = min(begin + self._drawn(step), self.length)
        if begin > 0:
            tokens = self.lanes[:, begin - 1 : end].astype(np.int64)
        else:
            first = np.full((len(self.lanes), 1), self.start, dtype=np.int64)
            tokens = np.concatenate([first, self.lanes[:, :end].astype(np.int64)], axis=1)
        return Batch(tokens, fresh=begin == 0)

    def steps_in(self, epochs: float) -> int:
        """How many steps it takes to read the lanes `epochs` times."""
        whole = int(epochs)
        if self.lengths == "fixed":
            per_epoch = -(-self.length // self.segment)
            rest = round((epochs - whole) * self.length)
            return max(1, whole * per_epoch + -(-rest // self.segment))
        if epochs * self.length / self.segment > MOST_COUNTED:
            raise ValueError(f"{epochs:g} epochs are too many to count: give train.steps")
        step, passes = 0, 0
        while passes < whole:
            step += 1
            passes += self._begin(step) == 0
        target = round((epochs - whole) * self.length)
        while self._begin(step) < target:
            step += 1
            if self._begin(step) == 0:
                break
        return max(1, step)

    def _begin(self, step: int) -> int:
        """Where in the lanes step `step` begins: the sum of all segments before it, wrapped."""
        if self.lengths == "fixed":
            per_epoch = -(-self.length // self.segment)
            return step % per_epoch * self.segment
        if step < self._step:
            self._step, self._place = 0, 0
        while self._step < step:
            self._place += self._drawn(self._step)
            self._step += 1
            if self._place >= self.length:
                self._place = 0
        return self._place

    def _drawn(self, step: int) -> int:
        """The length of step `step`'s segment before it is cut at the end of the lanes.

        `merity2019`: around the full length with probability 0.95, else around half of it; the normal's deviation is
        5, the least 5, and the full length the most. At 1,024 the mean is 996.
        """
        if self.lengths == "fixed":
            return self.segment
        draw = np.random.default_rng([self.seed, step])
        base = self.segment if draw.random() < 0.95 else self.segment / 2
        return int(np.clip(int(draw.normal(base, 5)), min(5, self.segment), self.segment))

"""What a step reads: the next segment of every stream, or windows from anywhere.

Streams: the training split is cut into contiguous lanes of equal length (the remainder is dropped). Step n reads the
next segment of every lane; at the end of the lanes training wraps to their beginning, and the state is emptied there.
Windows: step n reads pieces from random places, each from an empty state.
Which bytes step n reads is a pure function of (seed, step), so there is no position to save.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headcount.tables import BatchesTable

Bytes = npt.NDArray[np.uint8]
Tokens = npt.NDArray[np.int64]
MOST_COUNTED = 5_000_000
"""Segments of drawn length are counted one by one; more than these would take minutes."""


@dataclass(frozen=True)
class Batch:
    """The tokens of one step."""

    tokens: Tokens
    """B × (T + lookahead): the symbol before the segment, the segment, and what an objective reads beyond it."""
    fresh: bool
    """The segment begins the lanes: the state before it is empty."""
    predictions: int
    """How many bytes the step learns from."""


class Segments:
    """Carried streams: step n continues where step n - 1 ended."""

    def __init__(self, text: Bytes, table: BatchesTable, *, seed: int = 0, start: int = 10, lookahead: int = 1) -> None:
        lane = len(text) // table.streams
        self.beyond = lookahead - 1
        self.length = lane - self.beyond
        if self.length < 1:
            raise ValueError(f"{len(text)} bytes cannot make {table.streams} streams")
        self.lanes = text[: lane * table.streams].reshape(table.streams, lane)
        self.segment, self.lengths, self.seed, self.start = table.segment, table.lengths, seed, start
        self._step, self._place = 0, 0  # a memo of where step `_step` begins

    def at(self, step: int) -> Batch:
        """What step `step` (counted from 0) reads."""
        begin = self._begin(step)
        end = min(begin + self._drawn(step), self.length)
        tokens = self.lanes[:, max(0, begin - 1) : end + self.beyond].astype(np.int64)
        if begin == 0:
            first = np.full((len(self.lanes), 1), self.start, dtype=np.int64)
            tokens = np.concatenate([first, tokens], axis=1)
        return Batch(tokens, begin == 0, len(self.lanes) * (end - begin))

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


class Windows:
    """Pieces from random places, each from an empty state; a piece's first byte is fed, not predicted."""

    def __init__(self, text: Bytes, table: BatchesTable, *, seed: int = 0, lookahead: int = 1) -> None:
        self.text, self.seed, self.beyond = text, seed, lookahead
        self.count, self.segment = table.streams, min(table.segment, len(text) - lookahead)
        if self.segment < 1:
            raise ValueError(f"{len(text)} bytes are too few for a window")

    def at(self, step: int) -> Batch:
        """What step `step` (counted from 0) reads."""
        size = self.segment + self.beyond
        places = np.random.default_rng([self.seed, step]).integers(0, len(self.text) - size + 1, self.count)
        tokens = self.text[places[:, None] + np.arange(size)].astype(np.int64)
        return Batch(tokens, True, self.count * self.segment)

    def steps_in(self, epochs: float) -> int:
        """How many steps read as many bytes as `epochs` passes."""
        return max(1, round(epochs * len(self.text) / (self.count * self.segment)))

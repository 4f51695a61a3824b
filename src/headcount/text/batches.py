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
from headcount.text.encoding import Encoded

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
    """How many tokens the step learns from."""
    bytes: int
    """How many bytes of the text these stand for."""


class Segments:
    """Carried streams: step n continues where step n - 1 ended."""

    def __init__(self, text: Encoded, table: BatchesTable, *, seed: int = 0, lookahead: int = 1) -> None:
        lane = len(text.ids) // table.streams
        self.beyond = lookahead - 1
        self.length = lane - self.beyond
        if self.length < 1:
            raise ValueError(f"{len(text.ids)} tokens cannot make {table.streams} streams")
        shape, used = (table.streams, lane), lane * table.streams
        self.text, self.lanes = text, text.ids[:used].reshape(shape)
        self.spans = None if text.spans is None else text.spans[:used].reshape(shape)
        self.segment, self.lengths, self.seed = table.segment, table.lengths, seed
        self._step, self._place = 0, 0  # a memo of where step `_step` begins

    def at(self, step: int) -> Batch:
        """What step `step` (counted from 0) reads."""
        begin = self._begin(step)
        end = min(begin + self._drawn(step), self.length)
        tokens = self.lanes[:, max(0, begin - 1) : end + self.beyond].astype(np.int64)
        if begin == 0:
            first = np.full((len(self.lanes), 1), self.text.tokens.start, dtype=np.int64)
            tokens = np.concatenate([first, tokens], axis=1)
        learnt = self.lanes[:, begin:end]
        read = self.text.bytes_of(learnt, None if self.spans is None else self.spans[:, begin:end])
        return Batch(tokens, begin == 0, learnt.size, read)

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
    """Pieces from random places, each from an empty state; a piece's first token is fed, not predicted."""

    def __init__(self, text: Encoded, table: BatchesTable, *, seed: int = 0, lookahead: int = 1) -> None:
        self.text, self.seed, self.beyond = text, seed, lookahead
        self.count, self.segment = table.streams, min(table.segment, len(text.ids) - lookahead)
        if self.segment < 1:
            raise ValueError(f"{len(text.ids)} tokens are too few for a window")

    def at(self, step: int) -> Batch:
        """What step `step` (counted from 0) reads."""
        size = self.segment + self.beyond
        first = np.random.default_rng([self.seed, step]).integers(0, len(self.text.ids) - size + 1, self.count)
        places = first[:, None] + np.arange(size)
        tokens, learnt = self.text.ids[places], places[:, 1 : self.segment + 1]
        read = self.text.bytes_of(self.text.ids[learnt], None if self.text.spans is None else self.text.spans[learnt])
        return Batch(tokens.astype(np.int64), True, learnt.size, read)

    def steps_in(self, epochs: float) -> int:
        """How many steps read as many tokens as `epochs` passes."""
        return max(1, round(epochs * len(self.text.ids) / (self.count * self.segment)))

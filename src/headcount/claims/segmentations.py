"""How much a canonical segmentation overstates: the bits of all other ways in which the same bytes can be written.

A wordpiece model is charged for the pieces that its tokeniser would choose, but it also gives some probability to
other pieces that spell the same. Of a word s with the byte d that ends it, in its context,

    P(s d) = Σ over all tokens t₁ … t_k that spell s d or go beyond it, of which t₁ … t_{k-1} do not reach its end
    overstated = -log₂ P(canonical pieces of s, then a token that begins with d) + log₂ P(s d)  ≥  0

The sum is taken exactly, path by path with a state for each, as long as there are not too many: always for words of up
to 12 letters. Else by sweeps, token by token. Paths of as many tokens that end at the same place have written the same
bytes, so their probabilities can be compared: the likeliest are kept as they are, of the rest some are drawn and stand
for all (Fearnhead and Clifford 2003). One sweep has the expectation P(s d); several give a mean and its error. Drawing
piece by piece from the model would not do: what looks likely at first may fit badly later, and the few paths that have
most of the sum would hardly ever be drawn. Bytes have one path, and nothing is overstated: the chain rule.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.claims.branching import Branch, Logs
from headcount.measure.spelled import Sorted

AT_ONCE = 128
"""Paths read side by side."""
MOST_PATHS = 8_192
"""Tokens to read for one word, at most; a space and 12 letters have 2^13 - 1 of them under any pieces."""
KEPT, SWEEPS = 128, 8
"""Paths that a sweep keeps after every token, shared among the places where they end; and how many sweeps there are."""


@dataclass(frozen=True)
class Total:
    """The logarithm of a probability, in bits, and its standard error: None for an exact one."""

    bits: float
    error: float | None
    paths: int
    """Tokens that reading every path takes."""


class Pieces:
    """Which symbols fit at a place of some bytes."""

    def __init__(self, spellings: Sequence[bytes]) -> None:
        self.order = Sorted(spellings)
        self.ids = {spelling: i for i, spelling in enumerate(spellings)}
        self.longest = max(map(len, spellings))

    def within(self, text: bytes, place: int) -> list[tuple[int, int]]:
        """Symbols that fit and end before the last byte: each with the place where it ends."""
        last = min(place + self.longest, len(text) - 1)
        ends = ((self.ids.get(text[place:end]), end) for end in range(place + 1, last + 1))
        return [(symbol, end) for symbol, end in ends if symbol is not None]

    def closing(self, logs: Logs, text: bytes, place: int) -> float:
        """The logarithm of the mass of all symbols that reach the end or go beyond it."""
        return _log_sum(logs[self.order.order[slice(*self.order.range_of(text[place:]))]])

    def count(self, text: bytes) -> int:
        """Tokens that reading every path would take."""
        ways = [1] + [0] * len(text)
        for place in range(len(text) - 1):
            if ways[place]:
                for _, end in self.within(text, place):
                    ways[end] += ways[place]
        return sum(ways[1:])


def total(
    branch: Branch, text: bytes, pieces: Pieces, generator: np.random.Generator, *, most: int = MOST_PATHS
) -> Total:
    """log₂ P(text), whichever way: exactly up to so many paths; `text` ends with its delimiter."""
    paths = pieces.count(text)
    if paths <= most:
        return Total(exact(branch, text, pieces) / math.log(2), None, paths)
    log, error = sampled(branch, text, pieces, generator)
    return Total(log / math.log(2), error / math.log(2), paths)


def ending(branch: Branch, text: bytes, symbols: Sequence[int], pieces: Pieces) -> float:
    """log₂ of the probability that a token beginning with the last byte comes after these symbols."""
    for symbol in symbols:
        branch = branch.follow([0], [symbol])
    return pieces.closing(branch.log_probs[0], text, len(text) - 1) / math.log(2)


def exact(branch: Branch, text: bytes, pieces: Pieces) -> float:
    """ln P(text): every path, depth first, some at once."""
    found = [pieces.closing(branch.log_probs[0], text, 0)]
    waiting = [(branch, chunk) for chunk in _chunks(_grown(branch.log_probs[:1], [(0, 0.0)], text, pieces))]
    while waiting:
        before, chunk = waiting.pop()
        now = before.follow([row for row, _, _, _ in chunk], [symbol for _, symbol, _, _ in chunk])
        ends = [(place, log) for _, _, place, log in chunk]
        found += [log + pieces.closing(own, text, place) for (place, log), own in zip(ends, now.log_probs, strict=True)]
        waiting += [(now, grown) for grown in _chunks(_grown(now.log_probs, ends, text, pieces))]
    return _log_sum(np.array(found))


Grown = tuple[int, int, int, float]
"""The row it comes from, the symbol, where it ends, the logarithm of the path so far."""


def _grown(logs: Logs, ends: Sequence[tuple[int, float]], text: bytes, pieces: Pieces) -> list[Grown]:
    """Every path with one more symbol."""
    return [
        (row, symbol, end, log + float(logs[row, symbol]))
        for row, (place, log) in enumerate(ends)
        for symbol, end in pieces.within(text, place)
    ]


def _chunks(grown: Sequence[Grown]) -> Iterator[Sequence[Grown]]:
    return (grown[first : first + AT_ONCE] for first in range(0, len(grown), AT_ONCE))


def sampled(branch: Branch, text: bytes, pieces: Pieces, generator: np.random.Generator) -> tuple[float, float]:
    """ln of the mean of some sweeps, and its standard error."""
    logs = np.array([_sweep(branch, text, pieces, generator) for _ in range(SWEEPS)])
    masses = np.exp(logs - logs.max())
    mean = float(masses.mean())
    return float(logs.max()) + math.log(mean), float(masses.std(ddof=1)) / math.sqrt(SWEEPS) / mean


def _sweep(branch: Branch, text: bytes, pieces: Pieces, generator: np.random.Generator) -> float:
    """ln of one estimate of P(text)."""
    found, ends = [pieces.closing(branch.log_probs[0], text, 0)], [(0, 0.0)]
    while grown := _grown(branch.log_probs, ends, text, pieces):
        cells: dict[int, list[Grown]] = defaultdict(list)
        for path in grown:
            cells[path[2]].append(path)
        most = max(1, KEPT // len(cells))
        kept = [path for cell in cells.values() for path in thinned(cell, most, generator)]
        branch = branch.follow([row for row, _, _, _ in kept], [symbol for _, symbol, _, _ in kept])
        ends = [(place, log) for _, _, place, log in kept]
        found += [
            log + pieces.closing(own, text, place) for (place, log), own in zip(ends, branch.log_probs, strict=True)
        ]
    return _log_sum(np.array(found))


def thinned(paths: Sequence[Grown], most: int, generator: np.random.Generator) -> list[Grown]:
    """At most so many paths, so that every path is expected to weigh what it weighed.

    With c such that Σ min(1, w / c) = most, those with w ≥ c stay as they are; each of the others is drawn with a
    chance of w / c, and then weighs c.
    """
    if len(paths) <= most:
        return list(paths)
    order = sorted(paths, key=lambda path: -path[3])
    top = order[0][3]
    weights = np.exp(np.array([path[3] for path in order]) - top)
    rest = np.cumsum(weights[::-1])[::-1]
    sure = next((k for k in range(most) if weights[k] * (most - k) <= rest[k]), most)
    kept = order[:sure]
    if sure == most or not rest[sure] > 0:
        return kept
    each = rest[sure] / (most - sure)
    ends = np.cumsum(weights[sure:])
    marks = (generator.random() + np.arange(most - sure)) * each
    drawn = np.minimum(np.searchsorted(ends, marks, side="right"), len(ends) - 1)
    log = top + math.log(each)
    return kept + [(*order[sure + int(place)][:3], log) for place in drawn]


def _log_sum(logs: Logs) -> float:
    """ln Σ exp; of nothing it is minus infinity."""
    if not len(logs):
        return -math.inf
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else top

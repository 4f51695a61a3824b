"""How much a canonical segmentation overstates: the bits of all other ways in which the same bytes can be written.

A wordpiece model is charged for the pieces that its tokeniser would choose, but it also gives some probability to
other pieces that spell the same. Of a word s with the byte d that ends it, in its context,

    P(s d) = Σ over all tokens t₁ … t_k that spell s d or go beyond it, of which t₁ … t_{k-1} do not reach its end
    overstated = -log₂ P(canonical pieces of s, then a token that begins with d) + log₂ P(s d)  ≥  0

The sum is taken exactly, path by path with a state for each, as long as there are not too many. Else paths are drawn
from the model itself, restricted to what fits the bytes: a path's weight is Π (the mass of all that fits), and the mean
of the weights has the expectation P(s d). The canonical path, which has most of it, is known: its draws count 0 and its
probability is added, so that the error is only that of the rest. Bytes have one path, and nothing is overstated: the
chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.claims.branching import Branch, Logs
from headcount.measure.spelled import Sorted

AT_ONCE = 128
"""Paths read side by side."""
MOST_PATHS = 4_096
"""More tokens to read than this for one word are drawn from instead."""
DRAWS = 128


@dataclass(frozen=True)
class Total:
    """The logarithm of a probability, in bits, and its standard error: None for an exact one."""

    bits: float
    error: float | None
    paths: int
    """Tokens read, or paths drawn."""


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


@dataclass(frozen=True)
class Canonical:
    """The path that the tokeniser chooses: its symbols before the last, and ln P of all of it."""

    symbols: tuple[int, ...]
    log: float


def total(
    branch: Branch, text: bytes, pieces: Pieces, canonical: Canonical, generator: np.random.Generator, *, most: int
) -> Total:
    """log₂ P(text), whichever way: exactly up to so many paths; `text` ends with its delimiter."""
    paths = pieces.count(text)
    if paths <= most:
        return Total(exact(branch, text, pieces) / math.log(2), None, paths)
    log, error = sampled(branch, text, pieces, canonical, DRAWS, generator)
    return Total(log / math.log(2), error / math.log(2), DRAWS)


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


def sampled(
    branch: Branch, text: bytes, pieces: Pieces, canonical: Canonical, draws: int, generator: np.random.Generator
) -> tuple[float, float]:
    """ln of the canonical path's probability and the mean weight of others that are drawn, and its standard error."""
    weights = np.zeros(draws)
    paths: list[tuple[int, ...]] = [()] * draws
    rows, places, alive = [0] * draws, [0] * draws, list(range(draws))
    while alive:
        follow: list[tuple[int, int, int, int]] = []  # which draw, its row, the symbol, where it ends
        for draw in alive:
            own, place = branch.log_probs[rows[draw]], places[draw]
            fitting = pieces.within(text, place)
            logs = np.array([*(own[symbol] for symbol, _ in fitting), pieces.closing(own, text, place)])
            mass = _log_sum(logs)
            weights[draw] += mass
            chosen = int(generator.choice(len(logs), p=np.exp(logs - mass)))
            if chosen < len(fitting):
                follow.append((draw, rows[draw], *fitting[chosen]))
        if follow:
            branch = branch.follow([row for _, row, _, _ in follow], [symbol for _, _, symbol, _ in follow])
        alive = [draw for draw, _, _, _ in follow]
        for row, (draw, _, symbol, end) in enumerate(follow):
            rows[draw], places[draw], paths[draw] = row, end, (*paths[draw], symbol)
    others = np.array([path != canonical.symbols for path in paths]) * np.exp(weights - canonical.log)
    whole = 1 + others.mean()  # in units of the canonical path
    return canonical.log + math.log(whole), float(others.std(ddof=1) / math.sqrt(draws) / whole)


def _log_sum(logs: Logs) -> float:
    """ln Σ exp; of nothing it is minus infinity."""
    if not len(logs):
        return -math.inf
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else top

"""Guessing a word as one guesses a password: whole, or piece by piece with an answer after each piece.

The next word is known to be a space, some letters, and something that is no letter. Two ways to guess it:

    without feedback   whole words in the order of their probability, each summed over the segmentations that a beam
                       finds; wrong guesses = the rank of the true word among them, less 1
    with feedback      the pieces of the canonical segmentation, and at last that the word ends, each in the order of
                       its probability given the true pieces before it; wrong guesses = Σ (rank - 1). Π ranks is what
                       as many lists would need if only the whole combination were answered.

Only wrong guesses are counted: what is right at once costs nothing, in however many pieces. A place where only one
piece is possible is no guess. Bits add up over pieces as logarithms of a product: they charge what is needed without
feedback.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headcount.claims.branching import Branch, Logs
from headcount.claims.evidence import standard_error

LETTER = rb"[A-Za-z\x80-\xff]"
MOST_GUESSES = 100
"""A beam of so many words; beyond it no rank is known."""
MOST_PIECES = 32
"""Words are given up after so many."""


@dataclass(frozen=True)
class Guessed:
    """How one word was guessed."""

    whole: int | None
    """Its rank among whole words; None if it is beyond the beam."""
    ranks: tuple[int, ...]
    """Of its pieces, with feedback."""

    @property
    def wrong_whole(self) -> int:
        """Wrong guesses without feedback; a word beyond the beam is given up after as many as it holds."""
        return MOST_GUESSES if self.whole is None else self.whole - 1

    @property
    def wrong_by_piece(self) -> int:
        """Wrong guesses with feedback."""
        return sum(self.ranks) - len(self.ranks)

    @property
    def multiplied_bits(self) -> float:
        """log₂ of the product of the ranks."""
        return sum(map(math.log2, self.ranks))


class Openings:
    """Symbols by what they can do to a word: begin it, go on with it, end it."""

    def __init__(self, spellings: Sequence[bytes]) -> None:
        self.spellings = spellings
        begins, goes_on = re.compile(rb" %s*\Z" % LETTER), re.compile(rb"%s+\Z" % LETTER)
        all_at_once = re.compile(rb"( %s+)(?!%s)" % (LETTER, LETTER))
        ends, with_more = re.compile(rb"(?!%s)" % LETTER), re.compile(rb"(%s+)(?!%s|\Z)" % (LETTER, LETTER))
        self.begins = _of(spellings, begins)
        self.goes_on = _of(spellings, goes_on)
        self.ends = _of(spellings, ends)
        self.begins_and_ends = [i for i in _of(spellings, all_at_once) if not begins.match(spellings[i])]
        self.goes_on_and_ends = _of(spellings, with_more)
        self._letters = {i: all_at_once.match(spellings[i]) for i in self.begins_and_ends}
        self._rest = {i: with_more.match(spellings[i]) for i in self.goes_on_and_ends}

    def going(self, first: bool) -> list[int]:
        """Symbols after which the word may go on."""
        return self.begins if first else self.goes_on

    def closing(self, first: bool) -> list[int]:
        """Symbols that write the last letters of a word and what ends it."""
        return self.begins_and_ends if first else self.goes_on_and_ends

    def letters_of(self, symbol: int, first: bool) -> bytes:
        """What a closing symbol adds to a word."""
        match = (self._letters if first else self._rest)[symbol]
        assert match is not None, "it is one of them because it matches"
        return bytes(match[1])


def _of(spellings: Sequence[bytes], pattern: re.Pattern[bytes]) -> list[int]:
    return [i for i, spelling in enumerate(spellings) if pattern.match(spelling)]


def guess(branch: Branch, word: bytes, symbols: Sequence[int], openings: Openings) -> Guessed:
    """Both ways for a word (with its space) before which the branch stands; `symbols` are its canonical ones."""
    found = whole_words(branch, openings)
    own = found.get(word)
    whole = None if own is None else 1 + sum(mass > own for mass in found.values())
    whole = whole if whole is not None and whole <= MOST_GUESSES else None
    return Guessed(whole, tuple(piece_ranks(branch, symbols, openings)))


def whole_words(branch: Branch, openings: Openings, width: int = MOST_GUESSES) -> dict[bytes, float]:
    """The likeliest words and the probability that a beam found for each."""
    found: dict[bytes, float] = defaultdict(float)
    prefixes, logs = [b""], np.zeros(1)
    for step in range(MOST_PIECES):
        first, now = step == 0, branch.log_probs + logs[:, None]
        if not first:
            for prefix, mass in zip(prefixes, np.exp(now[:, openings.ends]).sum(axis=1), strict=True):
                if len(prefix) > 1:  # a space alone is no word
                    found[prefix] += float(mass)
        for row, symbol in _best(now, openings.closing(first), width):
            found[prefixes[row] + openings.letters_of(symbol, first)] += float(np.exp(now[row, symbol]))
        least = math.log(sorted(found.values())[-width] or 1e-300) if len(found) >= width else -math.inf
        grown = [pair for pair in _best(now, openings.going(first), width) if now[pair] > least]
        if not grown:
            break
        prefixes = [prefixes[row] + openings.spellings[symbol] for row, symbol in grown]
        logs = np.array([now[pair] for pair in grown])
        branch = branch.follow([row for row, _ in grown], [symbol for _, symbol in grown])
    return dict(found)


def _best(logs: Logs, symbols: Sequence[int], count: int) -> list[tuple[int, int]]:
    """The likeliest rows and symbols."""
    if not symbols:
        return []
    some = logs[:, symbols].ravel()
    chosen = np.argpartition(-some, count - 1)[:count] if len(some) > count else np.arange(len(some))
    return [(int(place) // len(symbols), symbols[int(place) % len(symbols)]) for place in chosen]


def piece_ranks(branch: Branch, symbols: Sequence[int], openings: Openings) -> list[int]:
    """The rank of every piece of a word, and of its end, among what was possible there."""
    ranks, ended = [], False
    for step, symbol in enumerate(symbols):
        first, own = step == 0, branch.log_probs[0]
        rivals = own[[*openings.going(first), *openings.closing(first)]]
        end = -math.inf if first else _log_mass(own[openings.ends])
        if len(rivals) + (not first) > 1:
            ranks.append(1 + int((rivals > own[symbol]).sum()) + (end > own[symbol]))
        ended = symbol in openings.closing(first)
        branch = branch.follow([0], [symbol])
    if not ended and openings.goes_on:
        own = branch.log_probs[0]
        rivals = own[[*openings.goes_on, *openings.goes_on_and_ends]]
        ranks.append(1 + int((rivals > _log_mass(own[openings.ends])).sum()))
    return ranks


def _log_mass(logs: Logs) -> float:
    return float(np.logaddexp.reduce(logs)) if len(logs) else -math.inf


def summed_up(found: Sequence[Guessed]) -> dict[str, Any]:
    """How some words were guessed, on average; both ways are given up after as many wrong guesses."""

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(found) if found else 0.0

    without = [one.wrong_whole for one in found]
    told = [min(one.wrong_by_piece, MOST_GUESSES) for one in found]
    pieces = sum(len(one.ranks) for one in found)
    return {
        "words": len(found),
        "pieces": pieces / max(1, len(found)),
        "without": {
            "first": mean(one.whole == 1 for one in found),
            "within": mean(wrong < MOST_GUESSES for wrong in without),
            "wrong": mean(without),
        },
        "with": {
            "first": mean(one.wrong_by_piece == 0 for one in found),
            "first_piece": sum(rank == 1 for one in found for rank in one.ranks) / max(1, pieces),
            "within": mean(wrong < MOST_GUESSES for wrong in told),
            "wrong": mean(told),
            "multiplied": 2 ** mean(one.multiplied_bits for one in found),
        },
        "saved": {"guesses": mean(without) - mean(told), "error": standard_error(np.subtract(without, told))},
    }

"""The copying probe: does a model repeat a string that it has read once, long before?

After Al-Rfou et al. 2018, who planted an invented name in a text. A word of random letters stands early in a stretch of
real text and begins again `distance` bytes later; its first letters are the cue, the rest is scored:

    … text … qzvkphdwxn … text … qzv|kphdwxn        with the first occurrence
    … text … mbgyrlcesa … text … qzv|kphdwxn        without: another random word stands in its place

The gain is what the first occurrence saves, in nats of the rest. Nothing but the first word differs between the two. No
letter stands twice in a word: it cannot be guessed from itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError
from headcount.measure.score import score_rows
from headcount.models.contract import Model

Bytes = npt.NDArray[np.uint8]
Nats = npt.NDArray[np.float64]

LEAD, LETTERS, CUE = 40, 10, 3
"""Bytes of text before the first occurrence; letters of a word; how many of them are given the second time."""
NEAREST = 16
"""The shortest distance at which both occurrences stand apart, each between spaces."""


@dataclass(frozen=True)
class Copying:
    """Nats per byte of the rest, distances × trials."""

    distances: tuple[int, ...]
    with_first: Nats
    without: Nats

    @property
    def gain(self) -> Nats:
        """What the first occurrence saves, in nats per byte."""
        return self.without - self.with_first


def distances(most: int) -> tuple[int, ...]:
    """16, 32, 64 … up to `most`."""
    if most < NEAREST:
        raise RequestError(f"a distance of {most}: must be at least {NEAREST}")
    return tuple(NEAREST << i for i in range((most // NEAREST).bit_length()))


def length(distance: int) -> int:
    """Bytes of one trial."""
    return LEAD + distance + LETTERS


def copying(model: Model, text: Bytes, tried: Iterable[int], *, trials: int, seed: int = 0) -> Copying:
    """The probe at every distance; the stretches of text and the words depend on the seed and the distance only."""
    tried = tuple(tried)
    if length(max(tried)) > len(text):
        raise RequestError(
            f"a distance of {max(tried):,} needs {length(max(tried)):,} bytes: the text has {len(text):,}"
        )
    rows = [[_rest(model, planted) for planted in plant(text, d, trials, seed)] for d in tried]
    return Copying(tried, np.stack([first for first, _ in rows]), np.stack([without for _, without in rows]))


def plant(text: Bytes, distance: int, trials: int, seed: int) -> tuple[Bytes, Bytes]:
    """Trials × length, with the first occurrence and without."""
    draw = np.random.default_rng((seed, distance))
    begins = draw.integers(0, len(text) - length(distance) + 1, size=(trials, 1))
    with_first = text[begins + np.arange(length(distance))]
    alphabet = np.arange(ord("a"), ord("z") + 1, dtype=np.uint8)
    word, other = draw.permuted(np.tile(alphabet, (2, trials, 1)), axis=2)[:, :, :LETTERS]
    with_first[:, [LEAD - 1, LEAD + LETTERS, LEAD + distance - 1]] = ord(" ")
    with_first[:, LEAD : LEAD + LETTERS] = with_first[:, LEAD + distance :] = word
    without = with_first.copy()
    without[:, LEAD : LEAD + LETTERS] = other
    return with_first, without


def _rest(model: Model, planted: Bytes) -> Nats:
    """Nats per byte of what comes after the cue, for every trial."""
    scored = LETTERS - CUE
    if model.restarts_after is not None and model.restarts_after < LETTERS:
        raise RequestError(f"this model's window of {model.restarts_after} bytes is shorter than a word of {LETTERS}")
    inputs, targets = planted[:, :-1], planted[:, -scored:]
    inputs = inputs[:, -(model.restarts_after or inputs.shape[1]) :]
    nats: Nats = score_rows(model, inputs, targets).mean(axis=1)
    return nats

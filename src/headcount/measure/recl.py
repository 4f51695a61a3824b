"""Relative effective context length (Dai et al. 2019, Appendix C): how far back a model of a group gains from reading.

With l_i(c, t) the nats of model i at position t after c bytes (measure/context.py), a group of models has

    b(c, t) = min_i l_i(c, t)                                    what the best of them pays with the short context
    T(c, r) = the share r of positions where b(c, t) is largest  the hardest ones; all of them for r = 1
    f_i(c, c') = mean over T(c, r) of min(b(c, t), l_i(c', t))   only what is better than the shared baseline counts
    g_i(c, c') = (exp f(c, c) - exp f_i(c, c')) / exp f(c, c)    with f(c, c) the mean of b(c, t)

and the length of model i is found by walking from a start in steps of Δ: while g_i(c, c + Δ) is at least 0.01, c
becomes c + Δ; then c is the answer. It depends on the group, on the start and on Δ. The paper states neither of
the two; its lengths, in words, are multiples of 100. A model that begins a new window after n bytes has no more than n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Nats = npt.NDArray[np.float64]

THRESHOLD = 0.01
SHARES = (0.1, 0.5, 1.0)


@dataclass(frozen=True)
class Walk:
    """How contexts are tried: from `start` in steps of `step`, and never beyond `most`."""

    start: int
    step: int
    most: int
    threshold: float = THRESHOLD


@dataclass(frozen=True)
class Length:
    """A model's relative effective context length."""

    context: int
    open: bool
    """It still gained at the longest context that was tried: the length is at least this."""


def held(length: Length, most: int | None) -> Length:
    """The length of a model that holds `most` bytes, if it has an end: longer contexts are fed to it as these."""
    return length if most is None or length.context < most else Length(most, open=False)


def baseline(losses: Nats) -> Nats:
    """b: the least of all models (models × positions) at every position."""
    least: Nats = losses.min(axis=0)
    return least


def hardest(base: Nats, share: float) -> npt.NDArray[np.int64]:
    """T: the positions with the largest baseline, a share of all, one at least; of equal ones the earlier."""
    count = max(1, round(share * len(base)))
    return np.argsort(-base, kind="stable")[:count]


def gain(base: Nats, longer: Nats, share: float) -> float:
    """g: by how much one model with the longer context lowers the perplexity of the hardest positions."""
    hard = hardest(base, share)
    before, after = base[hard].mean(), np.minimum(base, longer)[hard].mean()
    return float(-np.expm1(after - before))


def lengths(losses_at: Callable[[int], Nats], walk: Walk, share: float) -> list[Length]:
    """The length of every model of the group; `losses_at(c)` gives models × positions, and is asked as walked."""
    return [_length(losses_at, model, walk, share) for model in range(len(losses_at(walk.start)))]


def _length(losses_at: Callable[[int], Nats], model: int, walk: Walk, share: float) -> Length:
    context = walk.start
    while context + walk.step <= walk.most:
        longer = losses_at(context + walk.step)[model]
        if gain(baseline(losses_at(context)), longer, share) < walk.threshold:
            return Length(context, open=False)
        context += walk.step
    return Length(context, open=True)

"""Simple things that a text does at every byte, to ask whether some unit of a model follows them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headcount.measure.kinds import place_in_word

Bytes = npt.NDArray[np.uint8]
Values = npt.NDArray[np.float64]

DEEPEST = 8
"""Brackets that are never closed would otherwise drown the rest."""


def features(text: Bytes) -> dict[str, Values]:
    """Each feature after every byte has been read."""
    digits = (text >= ord("0")) & (text <= ord("9"))
    return {
        "in quotes": np.cumsum(text == ord('"')) % 2.0,
        "bracket depth": _depth(text),
        "column": _since(text == ord("\n")),
        "digit": digits.astype(np.float64),
        "position in word": place_in_word(text).astype(np.float64),
    }


def unchanging(text: Bytes) -> list[str]:
    """The features that a text does not have, or has from end to end: no unit can follow them."""
    return [name for name, values in features(text).items() if not np.ptp(values)]


def _depth(text: Bytes) -> Values:
    change = np.isin(text, list(b"([{")).astype(int) - np.isin(text, list(b")]}"))
    depth, found = 0, np.zeros(len(text))
    for place, by in enumerate(change.tolist()):
        depth = min(max(depth + by, 0), DEEPEST)
        found[place] = depth
    return found


def _since(marks: npt.NDArray[np.bool_]) -> Values:
    """Bytes since the last mark."""
    places = np.arange(len(marks))
    return (places - np.maximum.accumulate(np.where(marks, places, 0))).astype(np.float64)


def correlations(units: Values, feature: Values) -> Values:
    """Pearson's r of every unit (N × U) with a feature (N); 0 where either stands still."""
    centred = units - units.mean(axis=0)
    target = feature - feature.mean()
    size = np.sqrt((centred**2).sum(axis=0) * (target**2).sum())
    found: Values = np.divide(centred.T @ target, size, out=np.zeros(units.shape[1]), where=size > 1e-9)
    return found

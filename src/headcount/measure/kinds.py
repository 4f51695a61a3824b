"""Where the bits go: bytes by what they are, and letters by where in their word they stand."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headcount.text.characters import ESCAPED, code_points

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

MARKUP = b"<>[]{}|=&;#*_\\/`~^"
WORD_PLACES = ("first letter of a word", "second", "third", "fourth and later")


@dataclass(frozen=True)
class Share:
    """One kind of byte: how many, and the bits they took."""

    name: str
    count: int
    bits: float


def _table(members: bytes) -> Mask:
    table = np.zeros(256, dtype=bool)
    table[list(members)] = True
    return table


_KINDS: Mapping[str, Mask] = {
    "letters": _table(bytes(range(65, 91)) + bytes(range(97, 123))),
    "digits": _table(b"0123456789"),
    "white space": _table(b" \t\n\r\v\f"),
    "markup": _table(MARKUP),
    "other punctuation": _table(bytes(b for b in range(33, 127) if not chr(b).isalnum() and b not in MARKUP)),
    "beyond ASCII": _table(bytes(range(128, 256))),
    "control bytes": _table(bytes(b for b in (*range(32), 127) if b not in b" \t\n\r\v\f")),
}


def by_kind(text: Bytes, bits: npt.NDArray[np.float64]) -> list[Share]:
    """Every byte is of exactly one kind; kinds that do not occur are left out."""
    return _shares({name: table[text] for name, table in _KINDS.items()}, bits)


def by_place_in_word(text: Bytes, bits: npt.NDArray[np.float64]) -> list[Share]:
    """Letters of any script, all bytes of each: the first ones of a word carry most."""
    place = np.minimum(place_in_word(text), len(WORD_PLACES))
    return _shares({name: place == i + 1 for i, name in enumerate(WORD_PLACES)}, bits)


def place_in_word(text: Bytes) -> npt.NDArray[np.int64]:
    """1 for the first letter of a word, 2 for the second, …; 0 for everything that is no letter.

    Every byte of a character has its place; letters are Unicode's, with the marks that stand on them.
    """
    points = code_points(text.tobytes())
    known = [point for point in np.unique(points) if unicodedata.category(chr(point))[0] in "LM"]
    letters, positions = np.isin(points, known), np.arange(len(points))
    before = np.maximum.accumulate(np.where(letters, -1, positions)) if len(points) else positions
    sizes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    sizes[(points >= ESCAPED) & (points < ESCAPED + 256)] = 1  # a byte that is no UTF-8
    return np.repeat(np.where(letters, positions - before, 0), sizes)


def _shares(masks: Mapping[str, Mask], bits: npt.NDArray[np.float64]) -> list[Share]:
    return [Share(name, int(mask.sum()), float(bits[mask].sum())) for name, mask in masks.items() if mask.any()]

"""A text that is mapped, not read: walked through in stretches whose pages are given back.

A page that was looked at counts as resident until the system needs it. Whoever walks through a whole text therefore
takes a copy of a stretch and gives its pages back, so that memory does not grow with the text.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Text = npt.NDArray[np.uint8]
Cut = Callable[[Text, int, int], int]
"""Where a piece that begins at one place is to end, at or before another if it can."""
Apart = Callable[[Text], npt.NDArray[np.bool_]]
"""Of N bytes the N - 1 answers to whether a text falls apart between two neighbours."""
READ_AT_ONCE = 1 << 22
NEAR = 1 << 12
AROUND = 1 << 21
"""Bytes, as many as the largest page has."""


def stretch(text: Text, begin: int, end: int) -> bytes:
    """A copy of a stretch of a text."""
    content = text[begin:end].tobytes()
    give_back(text[begin:end])
    return content


def chunks(text: Text) -> Iterator[bytes]:
    """A text from its beginning to its end, a copy of a stretch at a time."""
    return (stretch(text, begin, begin + READ_AT_ONCE) for begin in range(0, len(text), READ_AT_ONCE))


def give_back(array: npt.NDArray[Any]) -> None:
    """Tell the system that a part of a mapped file is not needed; it is read again when it is.

    What lies around it goes too: pages around one that is looked at become resident with it.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is None or not len(array) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    low, high = np.lib.array_utils.byte_bounds(array)
    first = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
    begin = max(0, low - first - AROUND) // mmap.PAGESIZE * mmap.PAGESIZE
    end = min(len(mapped), high - first + AROUND)
    mapped.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def sha256(text: Text) -> str:
    """The hash of a text's bytes."""
    digest = hashlib.sha256()
    for piece in chunks(text):
        digest.update(piece)
    return digest.hexdigest()


def stretches(text: Text, size: int, cut: Cut) -> Iterator[tuple[int, int]]:
    """Where pieces of about `size` bytes begin and end."""
    begin = 0
    while begin < len(text):
        end = begin + size
        end = len(text) if end >= len(text) else cut(text, begin, end)
        yield begin, end
        begin = end


def last_cut(text: Text, begin: int, place: int, apart: Apart) -> int | None:
    """The last place after `begin`, up to `place`, where a text falls apart."""
    while place > begin:
        low = max(begin, place - NEAR)
        found = np.flatnonzero(apart(text[low : place + 1]))
        if len(found):
            return low + int(found[-1]) + 1
        place = low
    return None


def next_cut(text: Text, place: int, apart: Apart) -> int:
    """The first place after `place` where a text falls apart, at the latest its end."""
    while place < len(text):
        found = np.flatnonzero(apart(text[place : place + NEAR + 1]))
        if len(found):
            return place + int(found[0]) + 1
        place += NEAR
    return len(text)

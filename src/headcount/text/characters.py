"""Characters as tokens: the code points of a corpus, or the 27 symbols of text8.

Symbols 0 … 255 are the byte values; ASCII characters are these bytes. Code points beyond ASCII that occur in the
training split follow, the most frequent first. What is no UTF-8, or a character that was not there, is written as its
bytes, so any text is restored exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError
from headcount.text.mapped import Text, stretch, stretches
from headcount.text.symbols import SINGLE, Piece, Tokens

CODE_POINTS = 0x110000
ESCAPED = 0xDC00
"""Where Python's `surrogateescape` puts a byte that is no UTF-8."""
READ_AT_ONCE = 1 << 20


class Characters(Tokens):
    """Code points of a corpus over the byte values."""

    kind = "characters"
    lossless = True
    start = 10  # a newline

    def __init__(self, beyond: Sequence[int]) -> None:
        """`beyond`: the code points above ASCII that are symbols, in their order."""
        self.beyond = tuple(beyond)
        self._spellings = (*SINGLE, *(chr(point).encode() for point in self.beyond))
        self._symbols = np.full(CODE_POINTS, -1, dtype=np.int32)
        self._symbols[:128] = np.arange(128)
        self._symbols[ESCAPED + 128 : ESCAPED + 256] = np.arange(128, 256)
        self._symbols[list(self.beyond)] = 256 + np.arange(len(self.beyond))

    @classmethod
    def learn(cls, text: Text, most: int | None) -> Characters:
        """The code points of a text, the most frequent first; at most so many symbols in all."""
        counts = np.zeros(CODE_POINTS, dtype=np.int64)
        for begin, end in stretches(text, READ_AT_ONCE, character_cut):
            piece = stretch(text, begin, end)
            counts += np.bincount(code_points(piece), minlength=CODE_POINTS)
        counts[:128] = counts[ESCAPED : ESCAPED + 256] = 0
        order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
        return cls([int(point) for point in (order if most is None else order[: max(0, most - 256)])])

    @property
    def spellings(self) -> Sequence[bytes]:
        """A byte, or a character's UTF-8."""
        return self._spellings

    def cut(self, text: Text, begin: int, place: int) -> int:
        """Before a byte that begins a character."""
        return character_cut(text, begin, place)

    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """One token a character; one a byte for what has no symbol."""
        points = code_points(text)
        ids = self._symbols[points]
        if (ids < 0).any():
            ids = np.concatenate([*self._escaped(ids, points)])
        return Piece(ids, None, True)

    def _escaped(self, ids: npt.NDArray[np.int32], points: npt.NDArray[np.uint32]) -> Iterator[npt.NDArray[np.int32]]:
        """The symbols, with the bytes of unknown characters between them."""
        last = 0
        for place in map(int, np.flatnonzero(ids < 0)):
            yield ids[last:place]
            yield np.frombuffer(chr(points[place]).encode(), dtype=np.uint8).astype(np.int32)
            last = place + 1
        yield ids[last:]

    def learnt(self) -> Mapping[str, Any]:
        """The code points."""
        return {**self.named(), "beyond": list(self.beyond)}


class Text8Characters(Tokens):
    """The 27 symbols of text8: the space, then a … z. Nothing else can be written."""

    kind = "characters"
    lossless = False
    start = 0  # a space

    @property
    def spellings(self) -> Sequence[bytes]:
        """The space and the letters."""
        return tuple(bytes([value]) for value in b" abcdefghijklmnopqrstuvwxyz")

    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """One token a byte."""
        values = np.frombuffer(text, dtype=np.uint8)
        ids = _TEXT8[values]
        if (ids < 0).any():
            other = bytes(values[ids < 0][:1])
            raise RequestError(
                f"{other!r} is none of the 27 symbols of text8: tokens.alphabet = 'corpus' takes any text"
            )
        return Piece(ids.astype(np.uint8), None, True)


_TEXT8 = np.full(256, -1, dtype=np.int16)
_TEXT8[list(b" abcdefghijklmnopqrstuvwxyz")] = np.arange(27)


def character_cut(text: Text, begin: int, place: int) -> int:
    """Before a byte that begins a character; a fourth byte in a row that goes on with one belongs to none."""
    for back in range(place, max(begin, place - 4), -1):
        if text[back] & 0xC0 != 0x80:
            return back
    while place < min(begin + 4, len(text)) and text[place] & 0xC0 == 0x80:
        place += 1
    return place


def code_points(text: bytes) -> npt.NDArray[np.uint32]:
    """UTF-8 to code points; bytes that are none to U+DC80 … U+DCFF."""
    decoded = text.decode("utf-8", "surrogateescape")
    return np.frombuffer(decoded.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)

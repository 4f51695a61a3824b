"""How bytes become tokens, and back. A kind says which symbols there are, what each stands for, and whether any text
can be restored from them; what it learns from a corpus (its symbols) is plain data that travels with the model.

    bytes        the 256 bytes; nothing to learn, nothing unknown
    characters   code points, with the byte values for everything else; or the 27 symbols of text8
    words        what white space separates, a symbol for the end of a line, one for what is unknown
    wordpieces   byte pairs merged by frequency (needs the package tokenizers)
    legacy-txl   bytes without newlines: the stream that Transformer-XL's figures on enwik8 are about

A figure counts the nats of all tokens over the bytes of the text, so that kinds can be compared.
"""

from __future__ import annotations

import functools
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from headcount.text.mapped import Text

Ids = npt.NDArray[np.integer[Any]]
Spans = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Piece:
    """The tokens of a stretch of text."""

    ids: Ids
    spans: Spans | None
    """How many bytes of the text each token stands for; None where a token's spelling says so."""
    exact: bool
    """Whether the stretch can be restored from the tokens, to the byte."""


class Tokens(ABC):
    """A kind of token with its symbols, numbered from 0."""

    kind: ClassVar[str]
    lossless: ClassVar[bool]
    """Whether every text whatever can be restored; else it depends on the text."""
    rules: ClassVar[int] = 1
    """Raised whenever the same symbols give other tokens of the same text: what older rules prepared is not used."""
    start: int
    """The symbol that every stream begins after, so that its first token has a probability too."""

    @property
    @abstractmethod
    def spellings(self) -> Sequence[bytes]:
        """The bytes that each symbol stands for."""

    @property
    def vocabulary(self) -> int:
        """How many symbols there are."""
        return len(self.spellings)

    @abstractmethod
    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """The tokens of a stretch of text that begins and ends at a `cut`; `before` is the byte before it."""

    def encode(self, text: bytes) -> Ids:
        """The tokens of a text."""
        return self.encode_piece(text).ids

    def cut(self, text: Text, begin: int, place: int) -> int:
        """Where a piece that begins at `begin`, a cut or 0, ends, so that pieces encode to the tokens of the whole.

        It is the last such place up to `place`, or the next after it if there is none after `begin`.
        """
        return place

    def decode(self, ids: Sequence[int], before: int | None = None) -> bytes:
        """The bytes that tokens stand for, `before` being the one before the first."""
        spellings = self.spellings
        return b"".join(spellings[i] for i in ids)

    def spelled(self, after: int) -> Sequence[bytes]:
        """What every symbol would write after the symbol `after`: what a byte's probability is counted by."""
        return self.spellings

    @functools.cached_property
    def lengths(self) -> npt.NDArray[np.uint32]:
        """Bytes of every spelling."""
        return np.fromiter(map(len, self.spellings), dtype=np.uint32, count=self.vocabulary)

    def learnt(self) -> Mapping[str, Any] | None:
        """What was learnt from a corpus, as plain data; None if there is nothing."""
        return None

    @functools.cached_property
    def sha256(self) -> str | None:
        """Of what was learnt."""
        learnt = self.learnt()
        return None if learnt is None else hash_of(learnt)

    def named(self) -> dict[str, Any]:
        """How what was learnt begins: the kind, and its rules. The first ones are not written: they had no number."""
        return {"kind": self.kind, **({"rules": self.rules} if self.rules > 1 else {})}


def hash_of(learnt: Any) -> str:
    """The hash of what a kind learnt, as it is kept: before anything is made of it."""
    return hashlib.sha256(json.dumps(learnt, sort_keys=True).encode()).hexdigest()


class Bytes(Tokens):
    """Every byte is a token: any text is legal, nothing is unknown, and tokens are bytes."""

    kind = "bytes"
    lossless = True
    start = 10  # a newline

    @property
    def spellings(self) -> Sequence[bytes]:
        """Each byte stands for itself."""
        return SINGLE

    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """The bytes themselves."""
        return Piece(np.frombuffer(text, dtype=np.uint8), None, True)


class LegacyTxl(Bytes):
    """Bytes of which the newlines are dropped, as Transformer-XL's loader of enwik8 does.

    A text cannot be restored, so a figure is of another text: the one without its newlines, over whose bytes it is
    counted, as published.
    """

    kind = "legacy-txl"
    lossless = False

    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """What is left without newlines."""
        symbols = np.frombuffer(text, dtype=np.uint8)
        kept = symbols[symbols != 10]
        return Piece(kept, None, len(kept) == len(symbols))


SINGLE = tuple(bytes([value]) for value in range(256))


def to_text(spelling: bytes) -> str:
    """Bytes as JSON can hold them: a character for each."""
    return spelling.decode("latin-1")


def to_bytes(text: str) -> bytes:
    """Back from there."""
    return text.encode("latin-1")

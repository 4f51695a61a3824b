"""Wordpieces: byte pairs that occur often become symbols (BPE; Sennrich et al. 2016), over bytes, so that any text can
be written and restored.

A text is first cut into words, numbers, signs and white space, each at most 64 bytes; pairs are merged within these.
Hugging Face's `tokenizers` learns and applies the merges. It works on characters, so byte b is given to it as U+2800+b:
256 characters that are neither white space nor letters nor changed by any normalisation.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError
from headcount.text.mapped import Text, last_cut, stretch, stretches
from headcount.text.symbols import SINGLE, Piece, Tokens

FIRST = 0x2800
DEFAULT_VOCABULARY = 8_000
LEARNT_FROM = 100_000_000
"""At most so many bytes of the training split, evenly spread: more changes few merges and costs memory."""
READ_AT_ONCE = 1 << 14
"""The library waits for 256 of them."""
REMEMBERED = 1 << 17
"""Words whose pieces are kept, in each process."""
WORD = re.compile(rb" ?[A-Za-z\x80-\xff]{1,63}| ?[0-9]{1,63}| ?[^A-Za-z0-9\x80-\xff\s]{1,63}|\s{1,64}")
LONGEST = 64
"""Bytes of a match."""


class Wordpieces(Tokens):
    """The 256 bytes and the merges of them."""

    kind = "wordpieces"
    lossless = True
    start = 10  # a newline

    def __init__(self, merges: Sequence[tuple[int, int]]) -> None:
        """`merges`: pairs of symbols in the order they are applied; each makes the next symbol, from 256 on, unless a
        pair before it made the same bytes.
        """
        self.merges = tuple((int(left), int(right)) for left, right in merges)
        listed, known = list(SINGLE), set(SINGLE)
        for left, right in self.merges:
            if not (0 <= left < len(listed) and 0 <= right < len(listed)):
                raise ValueError(f"the merge {[left, right]} is of symbols that are not there yet")
            merged = listed[left] + listed[right]
            if merged not in known:
                known.add(merged)
                listed.append(merged)
        self._spellings = tuple(listed)
        self._model = _bpe(self._spellings, self.merges)
        self._known: dict[bytes, tuple[int, ...]] = {}

    @classmethod
    def learn(cls, text: Text, most: int | None) -> Wordpieces:
        """The merges of the most frequent pairs, until there are so many symbols."""
        tokenizers = _library()
        wanted = DEFAULT_VOCABULARY if most is None else most
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(" ", "removed")
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=wanted, show_progress=False, initial_alphabet=[chr(FIRST + b) for b in range(256)]
        )
        tokenizer.train_from_iterator((_words_apart(piece) for piece in _spread(text)), trainer)
        merges = _merges_of(tokenizer)
        del tokenizer, trainer
        _return_freed_memory()
        return cls(merges)

    @property
    def spellings(self) -> Sequence[bytes]:
        """Single bytes and what was merged from them."""
        return self._spellings

    def cut(self, text: Text, begin: int, place: int) -> int:
        """Where a word ends; in a piece without such a place, where words of 64 bytes do."""
        return piece_cut(text, begin, place)

    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """Word by word; those that were met before are looked up."""
        known, words = self._known, WORD.findall(text)
        for word in set(words).difference(known):
            known[word] = tuple(token.id for token in self._model.tokenize(_as_characters(word)))
        ids = np.fromiter(chain.from_iterable(map(known.__getitem__, words)), dtype=np.uint32)
        if len(known) > REMEMBERED:
            known.clear()
        return Piece(ids, None, True)

    def learnt(self) -> Mapping[str, Any]:
        """The merges; spellings follow from them."""
        return {**self.named(), "merges": [list(pair) for pair in self.merges]}


def _as_characters(text: bytes) -> str:
    return text.decode("latin-1").translate(_CHARACTERS)


_CHARACTERS = {value: chr(FIRST + value) for value in range(256)}


def _words_apart(text: bytes) -> str:
    return " ".join(map(_as_characters, WORD.findall(text)))


def _spread(text: Text) -> Iterator[bytes]:
    """Stretches of a text: all of it, or so many of them that not too much is read."""
    every = max(1, -(-len(text) // LEARNT_FROM))
    for number, (begin, end) in enumerate(stretches(text, READ_AT_ONCE, piece_cut)):
        if number % every == 0:
            yield stretch(text, begin, end)


def piece_cut(text: Text, begin: int, place: int) -> int:
    """Where one match of `WORD` ends whatever was before it, or one that is counted from the beginning of the piece."""
    if (sure := last_cut(text, begin, place, _apart)) is not None:
        return sure
    # The first match whole, and one byte after `place`: a match that goes on there does not end there.
    near = stretch(text, begin, max(begin + LONGEST, place + 1))
    ends = [begin + match.end() for match in WORD.finditer(near)]
    return max((end for end in ends if end <= place), default=ends[0])


_LETTER, _DIGIT, _SIGN, _SPACE, _WHITE = range(5)
_CLASSES = np.full(256, _SIGN)
_CLASSES[[b for b in range(256) if bytes([b]).isalpha() or b >= 0x80]] = _LETTER
_CLASSES[list(b"0123456789")] = _DIGIT
_CLASSES[list(b"\t\n\r\f\v")] = _WHITE
_CLASSES[ord(" ")] = _SPACE


def _apart(text: Text) -> npt.NDArray[np.bool_]:
    """Between two classes; but a space may belong to what comes after it, and to other white space before it."""
    classes = _CLASSES[text]
    left, right = classes[:-1], classes[1:]
    found: npt.NDArray[np.bool_] = (left != right) & (left != _SPACE) & ((left != _WHITE) | (right != _SPACE))
    return found


def _return_freed_memory() -> None:
    """To the system: glibc would keep what the library took for counting, hundreds of megabytes, for the whole run."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)


def _merges_of(tokenizer: Any) -> list[tuple[int, int]]:
    """The merges by our numbers: bytes are 0 … 255, then what is merged, in its order."""
    ours = {chr(FIRST + value): value for value in range(256)}
    merges = []
    for left, right in json.loads(tokenizer.to_str())["model"]["merges"]:
        merges.append((ours[left], ours[right]))
        ours.setdefault(left + right, len(ours))
    return merges


def _bpe(spellings: Sequence[bytes], merges: Sequence[tuple[int, int]]) -> Any:
    """The library's model of our symbols."""
    names = [_as_characters(spelling) for spelling in spellings]
    vocabulary = {name: i for i, name in enumerate(names)}
    return _library().models.BPE(vocab=vocabulary, merges=[(names[left], names[right]) for left, right in merges])


def _library() -> Any:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise RequestError("wordpieces need the package tokenizers: pip install tokenizers") from None
    return tokenizers

"""Words as tokens, as the papers of the field count them: what white space separates, `<eos>` for the end of a line,
`<unk>` for what the training split does not have (or has too rarely).

Symbols are ordered by frequency, as an adaptive softmax needs them. A text can be restored if all of its words are
known and its white space follows one of two layouts, which the training split decides:

    spaced   every line is " a b c ⏎" and an empty one " ⏎", as in WikiText: a word is " a", the end of a line " ⏎"
    plain    every line is "a b c⏎": a word is " a", or "a" as the first of its line, the end of a line "⏎"

A `<unk>` that a text itself holds is a word like any other, so WikiText's closed vocabulary restores WikiText.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from headcount.text.mapped import Text, last_cut, next_cut, stretch, stretches
from headcount.text.symbols import Piece, Tokens, to_bytes, to_text

Layout = Literal["spaced", "plain"]
EOS, UNKNOWN = b"<eos>", b"<unk>"
LINES_THAT_DECIDE = 1_000
COUNTED = 1 << 20
"""Different words that are counted at once where only some can become symbols."""
READ_AT_ONCE = 1 << 20
_WORD = re.compile(rb"\s*\S+")


class Words(Tokens):
    """A closed vocabulary of words."""

    kind = "words"
    lossless = False

    def __init__(self, words: Sequence[bytes], layout: Layout) -> None:
        """`words`: all symbols in their order, `<eos>` and `<unk>` among them."""
        self.words, self.layout = tuple(words), layout
        self._ids = {word: i for i, word in enumerate(self.words)}
        self.start, self.unknown = self._ids[EOS], self._ids[UNKNOWN]
        self._ids.pop(EOS)  # a text that holds these letters does not end a line
        self._after_word = self._spelled(b" ")
        self._after_line = self._after_word if layout == "spaced" else self._spelled(b"")

    @classmethod
    def learn(cls, text: Text, most: int | None) -> Words:
        """The words of a text, the most frequent first (equal ones in the order of their bytes)."""
        counts: Counter[bytes] = Counter()
        for begin, end in stretches(text, READ_AT_ONCE, word_cut):
            piece = stretch(text, begin, end)
            counts.update(piece.split())
            counts[EOS] += piece.count(b"\n")
            if most is not None and len(counts) > max(COUNTED, 4 * most):
                _forget_rare(counts, most)
        counts[UNKNOWN] += 0
        counts[EOS] += 0
        order = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
        if most is not None and len(order) > most:
            order = _with_both([word for word in order if word not in (EOS, UNKNOWN)][: most - 2], counts)
        return cls(order, _layout_of(text[:READ_AT_ONCE].tobytes()))

    @property
    def spellings(self) -> Sequence[bytes]:
        """With the space before a word."""
        return self._after_word

    def spelled(self, after: int) -> Sequence[bytes]:
        """The first word of a line may come without its space."""
        return self._after_line if after == self.start else self._after_word

    def _spelled(self, space: bytes) -> tuple[bytes, ...]:
        end = b" \n" if self.layout == "spaced" else b"\n"
        return tuple(end if i == self.start else space + word for i, word in enumerate(self.words))

    def cut(self, text: Text, begin: int, place: int) -> int:
        """After a newline or a word: white space belongs to what comes after it."""
        return word_cut(text, begin, place)

    def decode(self, ids: Sequence[int], before: int | None = None) -> bytes:
        """Words and ends of lines; without `before` it begins a line."""
        return b"".join(self._written(ids, self.start if before is None else before))

    def _written(self, ids: Iterable[int], before: int) -> Iterator[bytes]:
        for i in ids:
            yield self.spelled(before)[i]
            before = i

    def encode_piece(self, text: bytes, before: bytes = b"\n") -> Piece:
        """Line by line; a span holds the white space before its word."""
        ids: list[int] = []
        spans: list[int] = []
        exact, last = True, self.start if before == b"\n" else self.unknown
        *whole, rest = text.split(b"\n")
        for line in (*(line + b"\n" for line in whole), *filter(None, [rest])):
            own = [self._ids.get(word, self.unknown) for word in line.split()]
            if line.endswith(b"\n"):
                own.append(self.start)
            spellings = [*map(self.spelled(last).__getitem__, own[:1]), *map(self._after_word.__getitem__, own[1:])]
            if b"".join(spellings) == line:
                spans += map(len, spellings)
            else:
                exact = False
                spans += _measured(line)
            ids += own
            last = self.start
        return Piece(np.array(ids, dtype=np.uint32), np.array(spans, dtype=np.uint32), exact)

    def learnt(self) -> Mapping[str, Any]:
        """The words and their layout."""
        return {**self.named(), "layout": self.layout, "words": [to_text(word) for word in self.words]}

    @classmethod
    def of(cls, learnt: Mapping[str, Any]) -> Words:
        """Back from there."""
        return cls([to_bytes(word) for word in learnt["words"]], learnt["layout"])


def _forget_rare(counts: Counter[bytes], most: int) -> None:
    """Keep the more frequent half of the words, and what may become a symbol: the rest counts as unknown so far.

    Texts have ever more different words, nearly all of them rare: what is frequent is not among those that go.
    """
    for word, count in counts.most_common()[max(COUNTED // 2, 2 * most) :]:
        if word not in (EOS, UNKNOWN):
            counts[UNKNOWN] += count
            del counts[word]


def _with_both(words: list[bytes], counts: Counter[bytes]) -> list[bytes]:
    """`<eos>` and `<unk>` at their places by frequency; `<unk>` stands for all that was cut off."""
    counts[UNKNOWN] += sum(counts.values()) - sum(counts[word] for word in chain(words, (EOS, UNKNOWN)))
    return sorted([*words, EOS, UNKNOWN], key=lambda word: (-counts[word], word))


def _layout_of(text: bytes) -> Layout:
    """What most of the first lines look like."""
    lines = [line for line in text.split(b"\n")[:LINES_THAT_DECIDE] if line]
    spaced = sum(line[:1] == b" " and line[-1:] == b" " for line in lines)
    return "spaced" if 2 * spaced > len(lines) else "plain"


def _measured(line: bytes) -> list[int]:
    """The bytes of every word of a line and of its end, white space before each included.

    White space that a text ends with, without a newline, belongs to none.
    """
    spans = [len(match[0]) for match in _WORD.finditer(line)]
    return [*spans, len(line) - sum(spans)] if line.endswith(b"\n") else spans


def word_cut(text: Text, begin: int, place: int) -> int:
    """After a newline or a word: the last up to `place`, else the next."""
    return last_cut(text, begin, place, _apart) or next_cut(text, place, _apart)


_WHITE = np.array([bytes([value]).isspace() for value in range(256)])


def _apart(text: Text) -> npt.NDArray[np.bool_]:
    white = _WHITE[text]
    found: npt.NDArray[np.bool_] = (text[:-1] == ord("\n")) | (~white[:-1] & white[1:])
    return found

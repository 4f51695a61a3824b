"""One figure in every unit: bits per byte, bits per character, perplexity per word and per token.

A model that gives a text B bits in all has B / bytes bits per byte, B / characters bits per character, and a perplexity
of 2^(B / n) per word or token, n being how many there are: hence ppl = 2^(bpc · Nc / Nw) (Mikolov et al. 2012; Merity
2019, section 6.1). That is exact as long as B is spent on the same bytes and the counts are those of the same text.
Published figures usually break one of these conditions; `conditions` says by how much that moves them.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError, nearest
from headcount.text.mapped import stretch

Text = npt.NDArray[np.uint8]

SLICE = 1 << 20
WHITE_SPACE = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
NEWLINE = 10
UNKNOWN = re.compile(rb"<unk>(?!\S)(?<!\S<unk>)")


PARTS = (
    ("characters", "bytes"),
    *((part, whole) for part in ("words", "lines", "newlines") for whole in ("bytes", "characters")),
    ("unknown", "words"),
)
"""Counts that cannot be larger than others of the same text."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a text can be divided by; None is not known."""

    bytes: int | None = None
    characters: int | None = None
    """Code points of UTF-8; a byte that is none of it counts as one."""
    words: int | None = None
    """Split at ASCII white space, `<eos>` not among them; a text may have none."""
    lines: int | None = None
    """Those that end: word-level readers add one `<eos>` for each. A last line without its end has none, and no model
    was charged for it.
    """
    newlines: int | None = None
    unknown: int | None = None
    """Words that are `<unk>`."""
    tokens: int | None = None
    """Of whatever tokens a figure was measured with."""

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            least = 0 if name in ("lines", "newlines", "unknown") else 1
            if count is not None and count < least:
                raise RequestError(f"{name} = {count}: must be a whole number from {least} on")
        for part, whole in PARTS:
            few, many = getattr(self, part), getattr(self, whole)
            if few is not None and many is not None and few > many:
                raise RequestError(f"{few:,} {part} in {many:,} {whole}: there cannot be so many")

    @property
    def words_and_ends(self) -> int | None:
        """Words and an `<eos>` for each line."""
        return None if self.words is None or self.lines is None else self.words + self.lines


def count(text: Text, tokens: int | None = None) -> Counts:
    """The counts of a text, which is read slice by slice and never held whole."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")  # a wrong byte becomes one character
    characters = words = newlines = unknown = 0
    after_space = True
    for place in range(0, len(text), SLICE):
        content = stretch(text, place, place + SLICE)
        characters += len(decoder.decode(content, place + SLICE >= len(text)))
        piece = np.frombuffer(content, dtype=np.uint8)
        newlines += int(np.count_nonzero(piece == NEWLINE))
        space = WHITE_SPACE[piece]
        words += int(np.count_nonzero(~space[1:] & space[:-1])) + int(after_space and not space[0])
        after_space = bool(space[-1])
        unknown += _unknown(text, place)
    return Counts(
        bytes=len(text),
        characters=characters,
        words=words or None,
        lines=newlines,
        newlines=newlines,
        unknown=unknown if words else None,
        tokens=tokens,
    )


def _unknown(text: Text, place: int) -> int:
    """How many `<unk>` begin in the slice at `place`; what stands around them may lie outside."""
    begin = max(0, place - 1)
    around = stretch(text, begin, place + SLICE + len(b"<unk>"))
    return sum(place <= begin + match.start() < place + SLICE for match in UNKNOWN.finditer(around))


@dataclass(frozen=True)
class Unit:
    """A unit: which count it divides by, and whether it is a perplexity."""

    divides_by: str
    perplexity: bool


UNITS: Mapping[str, Unit] = {
    "bits-per-byte": Unit("bytes", perplexity=False),
    "bits-per-character": Unit("characters", perplexity=False),
    "perplexity-per-word": Unit("words", perplexity=True),
    "perplexity-per-word-with-eos": Unit("words_and_ends", perplexity=True),
    "perplexity-per-token": Unit("tokens", perplexity=True),
}

NEEDS = {
    "bytes": "the number of bytes",
    "characters": "the number of characters",
    "words": "the number of words",
    "words_and_ends": "the numbers of words and of lines",
    "tokens": "the number of tokens",
}


@dataclass(frozen=True)
class Condition:
    """Something that figures differ in without saying so: what the same bits become by it."""

    name: str
    unit: str
    value: float
    broken: float

    @property
    def difference(self) -> float:
        """In the unit."""
        return self.broken - self.value

    @property
    def per_cent(self) -> float:
        """Of the value."""
        return 100 * self.difference / self.value if self.value else 0.0


@dataclass(frozen=True)
class Converted:
    """A figure in every unit that the counts allow."""

    bits: float
    """Of the whole text."""
    counts: Counts
    values: Mapping[str, float]
    conditions: tuple[Condition, ...]


def total_bits(value: float, unit: str, counts: Counts) -> float:
    """The bits of the whole text that a figure stands for."""
    known = _unit(unit)
    least = 1.0 if known.perplexity else 0.0
    if not math.isfinite(value) or value < least:
        raise RequestError(f"{value} {unit}: must be a number from {least:g} on")
    bits = math.log2(value) if known.perplexity else value
    return bits * _divisor(unit, counts)


def from_bits(bits: float, unit: str, counts: Counts) -> float:
    """A figure of the whole text's bits; infinite where a perplexity is beyond what a number can hold."""
    return _figure(bits, unit, _divisor(unit, counts))


def convert(value: float, unit: str, counts: Counts) -> Converted:
    """A figure in every unit that the counts allow, and what the usual slips would make of it."""
    bits = total_bits(value, unit, counts)
    values = {
        name: value if name == unit else from_bits(bits, name, counts)
        for name, known in UNITS.items()
        if getattr(counts, known.divides_by) is not None
    }
    return Converted(bits, counts, values, conditions(bits, counts))


def conditions(bits: float, counts: Counts) -> tuple[Condition, ...]:
    """What usually differs between figures that stand in one column, as far as the counts can tell."""
    per_word = "perplexity-per-word" if counts.lines is None else "perplexity-per-word-with-eos"
    words = counts.words if counts.lines is None else counts.words_and_ends
    slips: list[tuple[str, str, int | None, int | None]] = [
        ("<eos> is not counted as a word", "perplexity-per-word-with-eos", counts.words_and_ends, counts.words),
        ("<unk> is not counted as a word", per_word, words, _less(words, counts.unknown)),
        ("newlines are dropped and not counted", "bits-per-byte", counts.bytes, _less(counts.bytes, counts.newlines)),
        ("'per character' is said of characters, not of bytes", "bits-per-byte", counts.bytes, counts.characters),
    ]
    found = []
    for name, unit, right, wrong in slips:
        if not right or not wrong or right == wrong:
            continue
        value, broken = _figure(bits, unit, right), _figure(bits, unit, wrong)
        if math.isfinite(value) and math.isfinite(broken):
            found.append(Condition(name, unit, value, broken))
    return tuple(found)


def _less(count: int | None, fewer: int | None) -> int | None:
    return None if count is None or fewer is None else count - fewer


def _figure(bits: float, unit: str, divisor: int) -> float:
    each = bits / divisor
    if not UNITS[unit].perplexity:
        return each
    return math.exp2(each) if each < 1024 else math.inf


def _unit(name: str) -> Unit:
    if name not in UNITS:
        raise RequestError(f"{name}: {nearest(name, UNITS)}")
    return UNITS[name]


def _divisor(unit: str, counts: Counts) -> int:
    divides_by = _unit(unit).divides_by
    divisor: int | None = getattr(counts, divides_by)
    if divisor is None:
        raise RequestError(f"{unit} needs {NEEDS[divides_by]}")
    return divisor

"""The paper's two examples (6.1.1), on what a text itself holds: two spellings of one word, and names that come back.

Spellings: where held-out text has a word in -ize or -ise of which the corpus knows both forms, both are scored in that
place. With P(one) and P(other), the probabilities of either word and of what follows it,

    stem    = -log₂ (P(one) + P(other))                 which word it is, however it is written
    choice  = -log₂ P(the form in the text) - stem      which of the two spellings

Names: words with a capital that are never written small, by how often they occurred before in the same text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.claims.evidence import standard_error
from headcount.text.mapped import Text, stretch
from headcount.use.load import LanguageModel

Bits = npt.NDArray[np.float64]
SPELLING = re.compile(
    rb"(?<![A-Za-z\x80-\xff])([A-Za-z]?[a-z]{2,}i)([sz])((?:e[drs]?|ers|ing|ations?)(?![A-Za-z\x80-\xff]))"
)
NAME = re.compile(rb"(?<= )[A-Z][a-z]{3,}(?![A-Za-z\x80-\xff])")
WORD = re.compile(rb"[A-Za-z]+")
CONTEXT, AFTER = 1_024, 64
"""Bytes read before a word that is scored in both spellings, and after it."""
MOST_CASES = 32
READ_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Case:
    """A place of the held-out text where either spelling could stand."""

    before: bytes
    written: bytes
    other: bytes
    after: bytes


def find_pairs(text: Text) -> dict[bytes, tuple[int, int]]:
    """Words that a text has in both spellings: the form with z, and how often it has each (z, s)."""
    counts: Counter[bytes] = Counter()
    for begin in range(0, len(text), READ_AT_ONCE):
        counts.update(match[0].lower() for match in SPELLING.finditer(stretch(text, begin, begin + READ_AT_ONCE)))
    forms = {word: swapped(word) for word in counts}
    return {word: (counts[word], counts[forms[word]]) for word in counts if _has_z(word) and forms[word] in counts}


def swapped(word: bytes) -> bytes:
    """The same word in the other spelling."""
    return SPELLING.sub(lambda match: match[1] + (b"s" if match[2] == b"z" else b"z") + match[3], word)


def _has_z(word: bytes) -> bool:
    match = SPELLING.fullmatch(word)
    return match is not None and match[2] == b"z"


def find_cases(held_out: Text, pairs: Mapping[bytes, tuple[int, int]]) -> list[Case]:
    """Places of a text at which one of these words stands after a space, spread over it."""
    text = held_out.tobytes()
    known = {form for word in pairs for form in (word, swapped(word))}
    found = []
    for match in SPELLING.finditer(text):
        if match[0].lower() in known and text[match.start() - 1 : match.start()] == b" " and match.end() < len(text):
            begin = max(0, match.start() - CONTEXT)
            begin = max(begin, text.find(b"\n", begin, match.start()) + 1)  # from a line's beginning, if one is near
            before, after = text[begin : match.start()], text[match.end() : match.end() + AFTER]
            found.append(Case(before, match[0], swapped(match[0]), after))
    chosen = sorted({round(place) for place in np.linspace(0, len(found) - 1, min(len(found), MOST_CASES))})
    return [found[place] for place in chosen]


def measure_spellings(lm: LanguageModel, cases: Sequence[Case]) -> dict[str, Any]:
    """Bits of the stem and of the choice, on average and case by case."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        written, other = (_bits_of(lm, case, form) for form in (case.written, case.other))
        both = -float(np.logaddexp2(-written, -other))
        rows.append({"written": case.written.decode(), "stem": both, "choice": written - both, "other": other})
    mean = {key: sum(row[key] for row in rows) / len(rows) if rows else None for key in ("stem", "choice")}
    errors = {f"{key}_error": standard_error([row[key] for row in rows]) for key in ("stem", "choice")}
    return {"cases": rows, **mean, **errors}


def _bits_of(lm: LanguageModel, case: Case, form: bytes) -> float:
    """Bits of one spelling and the byte after it."""
    begin = len(case.before)
    return float(lm.score(case.before + form + case.after)[begin : begin + len(form) + 1].sum())


def find_names(text: bytes) -> list[tuple[int, int, int]]:
    """Begin and end of every name (its space is the first byte), and how often it occurred before; twice at least."""
    small = {word for word in WORD.findall(text) if word.islower()}
    matches = [match for match in NAME.finditer(text) if match[0].lower() not in small]
    counts, seen, found = Counter(match[0] for match in matches), Counter[bytes](), []
    for match in matches:
        if counts[match[0]] > 1:
            found.append((match.start() - 1, match.end(), seen[match[0]]))
            seen[match[0]] += 1
    return found


def measure_names(bits: Bits, names: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    """Bits of a name with its space and what ends it, by whether it was read before; the share of its beginning."""
    measured: dict[str, Any] = {}
    for which in ("first", "later"):
        own = [(begin, end) for begin, end, seen in names if (seen > 0) == (which == "later")]
        whole = [float(bits[begin : end + 1].sum()) for begin, end in own]
        opening = [float(bits[begin : begin + 2].sum()) for begin, _ in own]
        measured[which] = {
            "names": len(own),
            "bits": sum(whole) / len(own) if own else None,
            "error": standard_error(whole),
            "opening": sum(opening) / sum(whole) if own and sum(whole) else None,
        }
    return measured

"""A text coloured by the bits of one model, or by the difference of two."""

from __future__ import annotations

from typing import Any

from headcount.errors import RequestError
from headcount.measure.figure import per_byte
from headcount.show import heat
from headcount.show.page import Section, escape, page
from headcount.show.report import heat_section
from headcount.use.load import LanguageModel

MOST = 50_000
"""Bytes that a browser still draws without complaint."""


def scored_page(lm: LanguageModel, text: bytes, name: str) -> str:
    """Bits of every byte, and the ten likeliest at its place."""
    require_short(len(text))
    data: dict[str, Any] = {"expected": []}
    return page(f"{name} by {lm.path}", [heat_section(lm, text, "Bits of every byte", data)], data)


def difference_page(lm: LanguageModel, other: LanguageModel, text: bytes, name: str) -> str:
    """Where one model is surer than another."""
    require_short(len(text))
    read, read_by_other = lm.read(text), other.read(text)
    bits, others = lm.score(text), other.score(text)
    (value, unit), (of_other, unit_of_other) = per_byte(bits.sum(), read), per_byte(others.sum(), read_by_other)
    clamp = heat.CLAMP_DIFFERENCE
    body = heat.coloured(text, bits - others, clamp=clamp) + heat.scale(
        f"{clamp:g} bits fewer with {lm.path}", f"{clamp:g} bits fewer with {other.path}", signed=True
    )
    about = (
        f"{escape(str(lm.path))}: {value:.4f} {unit}; {escape(str(other.path))}: {of_other:.4f} {unit_of_other}. "
        "Cool where the first spends fewer bits, warm where the second does."
    )
    if read.exact != read_by_other.exact:
        about += f" <strong>{escape(incomparable(lm, other))}</strong>"
    return page(f"{name}: {lm.path} against {other.path}", [Section("The difference, byte by byte", about, body)])


def incomparable(lm: LanguageModel, other: LanguageModel) -> str:
    """What is to be said where the text can be restored from the tokens of only one of two models."""
    return (
        f"Not comparable: the text can be restored from the tokens of only one of {lm.path} ({lm.tokens.kind}) and "
        f"{other.path} ({other.tokens.kind}); the other leaves out a part of what it takes to write it down."
    )


def require_short(size: int) -> None:
    """Refuse a text that cannot be drawn."""
    if not size:
        raise RequestError("the text is empty: there is nothing to colour")
    if size > MOST:
        raise RequestError(f"the text has {size:,} bytes: a page takes at most {MOST:,}; cut it with head -c")

"""A text coloured by the bits of one model, or by the difference of two."""

from __future__ import annotations

from typing import Any

from headcount.errors import RequestError
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
    bits, others = lm.score(text), other.score(text)
    clamp = heat.CLAMP_DIFFERENCE
    body = heat.coloured(text, bits - others, clamp=clamp) + heat.scale(
        f"{clamp:g} bits fewer with {lm.path}", f"{clamp:g} bits fewer with {other.path}", signed=True
    )
    about = (
        f"{escape(str(lm.path))}: {bits.mean():.4f} bits per byte; {escape(str(other.path))}: {others.mean():.4f}. "
        "Cool where the first spends fewer bits, warm where the second does."
    )
    return page(f"{name}: {lm.path} against {other.path}", [Section("The difference, byte by byte", about, body)])


def require_short(size: int) -> None:
    """Refuse a text that cannot be drawn."""
    if not size:
        raise RequestError("the text is empty: there is nothing to colour")
    if size > MOST:
        raise RequestError(f"the text has {size:,} bytes: a page takes at most {MOST:,}; cut it with head -c")

"""Text coloured by a number at every byte; under the cursor, what the model expected there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.show.page import escape

CLAMP = 8.0
"""Bits at which the colour is full: what a uniform guess over 256 bytes would cost."""
CLAMP_DIFFERENCE = 3.0
NAMES = {b"\n": "⏎", b" ": "␣", b"\t": "⇥", b"\r": "␍"}


def units(text: bytes) -> list[tuple[int, int, str]]:
    """What is drawn as one: (begin, end, shown) for every character of valid UTF-8 and every byte that is none."""
    found, place = [], 0
    while place < len(text):
        character = _character(text[place : place + 4])
        length = len(character.encode()) or 1
        piece = text[place : place + length]
        shown = {"\n": "⏎\n", " ": " "}.get(character) or (character if character.isprintable() else name_of(piece))
        found.append((place, place + length, shown or name_of(piece)))
        place += length
    return found


def _character(ahead: bytes) -> str:
    """The first character of at most four bytes, or nothing where they are no UTF-8."""
    for length in range(1, len(ahead) + 1):
        try:
            return ahead[:length].decode()
        except UnicodeDecodeError:
            continue
    return ""


def name_of(piece: bytes) -> str:
    """A byte by itself: as it is if it can be seen, else what it is called."""
    if piece in NAMES:
        return NAMES[piece]
    if len(piece) == 1 and 33 <= piece[0] < 127:
        return piece.decode()
    return "".join(f"\\x{byte:02x}" for byte in piece)


def plain(text: bytes) -> str:
    """The text as spans that wait for a colour. With the arrow keys one goes from span to span."""
    return _spans(f'<b data-at="{begin}">{escape(shown)}</b>' for begin, _, shown in units(text))


def coloured(
    text: bytes,
    values: npt.NDArray[np.float64],
    *,
    clamp: float = CLAMP,
    unit: str = "bits",
    of: Callable[[npt.NDArray[np.float64]], Any] = np.sum,
) -> str:
    """The text as spans, warm above 0 and cool below; a character has the sum of its bytes, or another value `of` them.

    With the arrow keys one goes from span to span.
    """
    parts = []
    for begin, end, shown in units(text):
        value = float(of(values[begin:end]))
        hue = "--cool" if value < 0 else "--heat"
        strength = min(abs(value) / clamp, 1.0) * 0.85
        style = f' style="background:rgba(var({hue}),{strength:.2f})"' if strength >= 0.005 else ""
        parts.append(f'<b data-at="{begin}"{style} title="{value:.2f} {unit}">{escape(shown)}</b>')
    return _spans(parts)


def _spans(parts: Iterable[str]) -> str:
    return f'<div class="text heat" tabindex="0" role="group" aria-label="the text">{"".join(parts)}</div>'


def scale(low: str, high: str, *, signed: bool = False) -> str:
    """What the colours mean."""
    left = "rgba(var(--cool),.85), rgba(var(--heat),0) 50%" if signed else "rgba(var(--heat),0)"
    return (
        f'<div class="gradient" style="background:linear-gradient(90deg, {left}, rgba(var(--heat),.85))"></div>'
        f'<div class="scale"><span>{escape(low)}</span><span>{escape(high)}</span></div>'
    )


def expectations(
    text: bytes,
    bits: npt.NDArray[np.float64],
    expected: Sequence[Sequence[tuple[int, float]]],
) -> dict[str, Any]:
    """For the page's script: every byte's name and bits, and the likeliest bytes there as numbers and per mille."""
    return {
        "names": [name_of(bytes([byte])) for byte in range(256)],
        "bytes": list(text),
        "bits": [round(float(b), 2) for b in bits],
        "candidates": [[[byte, round(1000 * share, 1)] for byte, share in row] for row in expected],
    }

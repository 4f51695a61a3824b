"""Plots as inline SVG: they scale, print, follow the page's colours, and need no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headcount.show.page import escape

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 68, 30, 14, 52
COLOURS = 6
"""Classes c0 … c5 of the style sheet."""


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    marked: bool = False
    """Points are marked: they are few and measured; others are many and smoothed."""


def line_chart(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    """Curves over one axis; both axes begin where the data does."""
    lines = [line for line in lines if line.points]
    if not lines:
        return "<p>Nothing measured yet.</p>"
    xs = [x for line in lines for x, _ in line.points]
    ys = sorted(y for line in lines for _, y in line.points)
    # The first steps are far above the rest and would flatten what matters.
    top = max(ys[min(len(ys) - 1, int(0.97 * len(ys)))], max(y for line in lines for _, y in line.points[-1:]))
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(ys[0], top)
    x_at = _scale(x_ticks[0], x_ticks[-1], LEFT, WIDTH - RIGHT)
    y_at = _scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [_axes(x_ticks, y_ticks, x_at, y_at, x_label, y_label)]
    for line in lines:
        place = [(x_at(x), max(y_at(y), float(TOP))) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
        parts.append(
            f'<polyline class="line c{line.colour % COLOURS}{" thin" if not line.marked else ""}" points="{path}"/>'
        )
        if line.marked:
            parts += [
                f'<circle class="dot c{line.colour % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
                f"<title>{escape(line.name)}: {y_label} {value:.4f} at {x_label} {along:,.6g}</title></circle>"
                for (x, y), (along, value) in zip(place, line.points, strict=True)
            ]
    legend = "".join(
        f'<span class="key c{line.colour % COLOURS}{" thin" if not line.marked else ""}">{escape(line.name)}</span>'
        for line in lines
    )
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(y_label)} by {escape(x_label)}">'
        f'{"".join(parts)}</svg><div class="legend">{legend}</div>'
    )


def bar_chart(bars: Sequence[tuple[str, float, str]], label: str) -> str:
    """Horizontal bars: name, length, and what is written beside it."""
    longest = max((value for _, value, _ in bars), default=0) or 1
    rows = "".join(
        f'<div class="bar" role="listitem"><span class="name">{escape(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * value / longest:.1f}%"></span></span>'
        f'<span class="value">{escape(note)}</span></div>'
        for name, value, note in bars
    )
    return f'<div class="bars" role="list" aria-label="{escape(label)}">{rows}</div>'


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    if high - low < 1e-6 * max(1.0, abs(low)):  # nothing to tell apart
        high = low + max(1.0, abs(low))
    raw = (high - low) / about
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _scale(low: float, high: float, to_low: float, to_high: float) -> Callable[[float], float]:
    return lambda value: to_low + (value - low) / ((high - low) or 1) * (to_high - to_low)


def _axes(
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    x_at: Callable[[float], float],
    y_at: Callable[[float], float],
    x_label: str,
    y_label: str,
) -> str:
    floor = HEIGHT - BOTTOM
    grid = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_at(v):.1f}" y2="{y_at(v):.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y_at(v) + 4:.1f}" text-anchor="end">{v:g}</text>'
        for v in y_ticks
    ]
    below = [
        f'<text class="tick" x="{x_at(v):.1f}" y="{floor + 21}" text-anchor="middle">{short(v)}</text>' for v in x_ticks
    ]
    names = (
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
        f'<text class="label" transform="translate(17 {(TOP + floor) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return "".join(grid) + "".join(below) + names


def short(value: float) -> str:
    """1,200,000 as 1.2M: what fits under an axis."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"

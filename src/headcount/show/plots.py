"""Plots as inline SVG: they scale, print, follow the page's colours, and need no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headcount.show.page import escape

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 108, 34, 14, 58
"""The left one has room for what an axis is called and five digits in the large letters of a phone."""
MOST_POWERS = 8
"""Of two that stand beside one another without touching, on a phone too."""
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


@dataclass(frozen=True)
class Mark:
    """A place along the bottom that says something of one curve."""

    name: str
    at: float
    colour: int


def line_chart(
    lines: Sequence[Line], x_label: str, y_label: str, *, doubling: bool = False, marks: Sequence[Mark] = ()
) -> str:
    """Curves over one axis; both axes begin where the data does. `doubling`: equal steps to the right double x."""
    lines = [line for line in lines if line.points]
    if not lines:
        return "<p>Nothing measured yet.</p>"
    xs = [x for line in lines for x, _ in line.points]
    x_ticks, x_at = _doubling(min(xs), max(xs)) if doubling else _even(min(xs), max(xs))
    y_ticks = ticks(min(y for line in lines for _, y in line.points), _top(lines))
    y_at = _scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [_axes(x_ticks, y_ticks, x_at, y_at, x_label, y_label)]
    parts += [
        f'<line class="mark c{mark.colour % COLOURS}" x1="{x_at(mark.at):.1f}" x2="{x_at(mark.at):.1f}" y1="{TOP}" '
        f'y2="{HEIGHT - BOTTOM}"><title>{escape(mark.name)}</title></line>'
        for mark in marks
        if min(xs) <= mark.at <= max(xs)
    ]
    parts += [_drawn(line, x_at, y_at, x_label, y_label) for line in lines]
    legend = "".join(f'<span class="key {_look(line)}">{escape(line.name)}</span>' for line in lines)
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(y_label)} by {escape(x_label)}">'
        f'{"".join(parts)}</svg><div class="legend">{legend}</div>'
    )


def _drawn(
    line: Line, x_at: Callable[[float], float], y_at: Callable[[float], float], x_label: str, y_label: str
) -> str:
    """A curve; one that is not marked may come from above, and is seen from where it enters the plot."""
    place = [(x_at(x), y_at(y)) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    if not line.marked:
        box = f'x="{LEFT}" y="{TOP}" width="{WIDTH - RIGHT - LEFT}" height="{HEIGHT - BOTTOM - TOP}"'
        view = f'viewBox="{LEFT} {TOP} {WIDTH - RIGHT - LEFT} {HEIGHT - BOTTOM - TOP}"'
        return f'<svg {box} {view}><polyline class="line {_look(line)}" points="{path}"/></svg>'
    radius = 3 if len(place) > 1 else 6
    dots = "".join(
        f'<circle class="dot c{line.colour % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
        f"<title>{escape(line.name)}: {y_label} {value:.4f} at {x_label} {along:,.6g}</title></circle>"
        for (x, y), (along, value) in zip(place, line.points, strict=True)
    )
    return f'<polyline class="line {_look(line)}" points="{path}"/>{dots}'


def _look(line: Line) -> str:
    """Classes: the colour, dashed where it is used for the second time, and thin where nothing is marked."""
    again = " again" if line.colour >= COLOURS else ""
    return f"c{line.colour % COLOURS}{again}{'' if line.marked else ' thin'}"


def bar_chart(bars: Sequence[tuple[str, float, str]], label: str, marks: Sequence[float] = ()) -> str:
    """Horizontal bars: name, length, and what is written beside it; `marks`: a line across each at another length."""
    longest = max([value for _, value, _ in bars] + [*marks], default=0) or 1
    lines = [f'<span class="at" style="left:{100 * mark / longest:.1f}%"></span>' for mark in marks] or [""] * len(bars)
    rows = "".join(
        f'<div class="bar" role="listitem"><span class="name">{escape(name)}</span>'
        f'<span class="track"><span class="fill" style="width:{100 * value / longest:.1f}%"></span>{line}</span>'
        f'<span class="value">{escape(note)}</span></div>'
        for (name, value, note), line in zip(bars, lines, strict=True)
    )
    return f'<div class="bars" role="list" aria-label="{escape(label)}">{rows}</div>'


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    if high - low < 1e-6 * max(1.0, abs(low)):  # nothing to tell apart: it stands in the middle
        around = abs(low) / 2 if abs(low) > 1e-3 else 1.0
        low, high = low - around, high + around
    raw = (high - low) / about
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _top(lines: Sequence[Line]) -> float:
    """Where the vertical axis ends. The first steps of training are far above the rest and would flatten it."""
    ys = sorted(y for line in lines for _, y in line.points)
    if all(line.marked for line in lines):
        return ys[-1]
    return max(ys[min(len(ys) - 1, int(0.97 * len(ys)))], max(y for line in lines for _, y in line.points[-1:]))


Ticks = Sequence[tuple[float, str]]


def _even(low: float, high: float) -> tuple[Ticks, Callable[[float], float]]:
    """Round numbers and what is written below them; where a number stands."""
    found = ticks(low, high)
    return [(v, short(v)) for v in found], _scale(found[0], found[-1], LEFT, WIDTH - RIGHT)


def _doubling(low: float, high: float) -> tuple[Ticks, Callable[[float], float]]:
    """The same with powers of two; every other one where there are many, and a lone one in the middle."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    beyond = first == last
    place = _scale(first - beyond, last + beyond, LEFT, WIDTH - RIGHT)
    shown = range(first, last + 1, 1 if last - first < MOST_POWERS else 2)
    return [(2**i, f"{2**i:,}") for i in shown], lambda value: place(math.log2(value))


def _scale(low: float, high: float, to_low: float, to_high: float) -> Callable[[float], float]:
    return lambda value: to_low + (value - low) / ((high - low) or 1) * (to_high - to_low)


def _axes(
    x_ticks: Ticks,
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
        f'<text class="tick" x="{x_at(v):.1f}" y="{floor + 24}" text-anchor="middle">{text}</text>'
        for v, text in x_ticks
    ]
    names = (
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
        f'<text class="label" transform="translate(25 {(TOP + floor) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return "".join(grid) + "".join(below) + names


def short(value: float) -> str:
    """1,200,000 as 1.2M: what fits under an axis."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"

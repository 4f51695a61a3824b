"""Curves of one run or several, by steps, bytes and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.show.plots import Line, line_chart

POINTS = 240
"""Of all training curves in a plot together: neighbours are averaged, single steps only flicker."""
AXES = ("steps", "bytes", "seconds")


def curves(runs: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> str:
    """Training (thin) and validation (marked) of every run, with a choice of what runs along the bottom."""
    buttons = "".join(
        f'<button type="button" aria-pressed="{"true" if i == 0 else "false"}">by {axis}</button>'
        for i, axis in enumerate(AXES)
    )
    plots = [line_chart(_lines(runs, axis), axis, "bits per byte") for axis in AXES]
    panels = "".join(f'<div data-panel="axis"{" hidden" if i else ""}>{plot}</div>' for i, plot in enumerate(plots))
    return f'<div class="choices" data-tabs="axis">{buttons}</div>{panels}'


def _lines(runs: Sequence[tuple[str, Sequence[dict[str, Any]]]], axis: str) -> list[Line]:
    lines, most = [], max(POINTS // max(len(runs), 1), 40)
    for colour, (name, events) in enumerate(runs):
        label = f"{name}: " if len(runs) > 1 else ""
        steps = [e for e in events if e["event"] == "step"]
        place = {e["step"]: _place(e, axis) for e in steps}
        learnt = next((e["exact"] for e in events if "exact" in e), True)
        training = _averaged([(place[e["step"]], e["bits_per_byte"]) for e in steps], most)
        lines.append(Line(f"{label}training{_lossy(learnt)}", training, colour))
        measured = [
            (place[e["step"]], e["bits_per_byte"]) for e in events if e["event"] == "evaluated" and e["step"] in place
        ]
        restored = all(was_exact(e) for e in events if e["event"] == "evaluated")
        lines.append(Line(f"{label}validation{_lossy(restored)}", measured, colour, marked=True))
    return lines


def was_exact(evaluated: dict[str, Any]) -> bool:
    """Whether the held-out text can be restored from its tokens; before there were other kinds than bytes, it could."""
    tokens = evaluated.get("tokens")
    return bool(tokens["exact"]) if isinstance(tokens, dict) else True


def _lossy(exact: bool) -> str:
    return "" if exact else ", not lossless"


def _place(event: dict[str, Any], axis: str) -> float:
    return float(event["step" if axis == "steps" else axis])


def _averaged(points: list[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    size = -(-len(points) // most)
    parts = [points[i : i + size] for i in range(0, len(points), size or 1)]
    return [(part[len(part) // 2][0], sum(y for _, y in part) / len(part)) for part in parts]

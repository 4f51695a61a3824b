"""Runs side by side: what may be ranked in one column, and what may not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.counted import counted
from headcount.errors import RequestError
from headcount.learn.run import Run
from headcount.use.describe import describe, unit_of


@dataclass(frozen=True)
class Row:
    """A run and one of its figures."""

    run: str
    figure: dict[str, Any] | None
    parameters: int
    bytes_seen: int
    seconds: float
    flops: int
    memory: int | None
    """The most that was resident while it trained; unknown until it has ended."""

    @property
    def speed(self) -> float:
        """Bytes learnt from per second."""
        return self.bytes_seen / self.seconds if self.seconds else 0.0

    @property
    def value(self) -> float:
        """Bits per byte; worse than anything where there is no figure."""
        return self.figure["value"] if self.figure else float("inf")


@dataclass(frozen=True)
class Group:
    """Rows whose figures may be ranked: best first."""

    measured_on: str
    differs: str
    """In what it differs from the first group; empty for the first."""
    rows: tuple[Row, ...]


def compare(paths: Sequence[str]) -> list[Group]:
    """The runs in groups: the one with the most runs first, and runs without a figure last.

    Figures are comparable when the hash of the scored bytes, the denominator, whether the model adapts at test time
    and whether the text can be restored from the tokens agree. A run's newest figure of each kind counts; a run stands
    in the largest group it has a figure for.
    """
    if len({Path(path).resolve() for path in paths}) < len(paths):
        raise RequestError("a run is named twice")
    figures = {path: _newest(Run.existing(path)) for path in paths}
    waiting = list(paths)
    groups: list[Group] = []
    while waiting:
        keys = {key for path in waiting for key in figures[path]}
        if not keys:
            rows = tuple(_row(path, None) for path in waiting)
            groups.append(Group("nothing yet", "no figure was measured", rows))
            break
        # The largest group; of equal ones the one on more bytes.
        key = max(keys, key=lambda k: (sum(k in figures[p] for p in waiting), k[1], k))
        members = [path for path in waiting if key in figures[path]]
        rows = tuple(sorted((_row(path, figures[path][key]) for path in members), key=lambda row: row.value))
        first = groups[0].rows[0].figure if groups else None
        differs = _difference(first, rows[0].figure) if first else ""
        groups.append(Group(_measured_on(rows[0].figure), differs, rows))
        waiting = [path for path in waiting if path not in members]
    return groups


Key = tuple[str, int, str, bool, bool]


def _newest(run: Run) -> dict[Key, dict[str, Any]]:
    """A run's newest figure of every comparable kind."""
    return {
        (f["corpus"]["sha256"], f["bytes"], f["unit"], f["protocol"].get("adapts", False), f["tokens"]["exact"]): f
        for f in run.figures()
        if "curve" not in f["protocol"]
    }


def _measured_on(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "nothing yet"
    corpus, lossy = figure["corpus"], "" if figure["tokens"]["exact"] else "; not lossless"
    return (
        f"{corpus['name']} {corpus['split']}, {counted(figure['bytes'], 'byte')}, sha256 {corpus['sha256'][:12]}{lossy}"
    )


def _difference(one: dict[str, Any], other: dict[str, Any] | None) -> str:
    assert other is not None
    parts = []
    if one["corpus"]["sha256"] != other["corpus"]["sha256"]:
        parts.append(f"other bytes were scored ({_measured_on(other)})")
    if one["bytes"] != other["bytes"]:
        parts.append(f"divided by {counted(other['bytes'], 'byte')}, not {one['bytes']:,}")
    if one["unit"] != other["unit"]:
        parts.append(f"in {other['unit']}")
    if one["protocol"].get("adapts", False) != other["protocol"].get("adapts", False):
        parts.append("one adapts while it is measured, the other does not")
    if one["tokens"]["exact"] != other["tokens"]["exact"]:
        parts.append("from the tokens of one the text can be restored, from the other's not")
    return "; ".join(parts)


def _row(path: str, figure: dict[str, Any] | None) -> Row:
    run = Run(path)
    facts = describe(path)
    events = run.events()
    last: dict[str, Any] = next((e for e in reversed(events) if e["event"] == "step"), {"bytes": 0, "seconds": 0.0})
    per_byte = figure["tokens"]["scored"] / figure["bytes"] if figure else 1.0  # a model computes once a token
    ended: dict[str, Any] = next((e for e in reversed(events) if e["event"] == "finished"), {})
    return Row(
        run=path,
        figure=figure,
        parameters=facts["parameters"]["in use"],
        bytes_seen=last["bytes"],
        seconds=last["seconds"],
        flops=round(facts[f"flops_per_{unit_of(run.recipe)}"]["forward"] * per_byte),
        memory=ended.get("memory"),
    )

"""Runs side by side: what may be ranked in one column, and what may not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headcount.counted import counted
from headcount.learn.run import Run, measured_alike, require_different
from headcount.use.describe import describe, unit_of


@dataclass(frozen=True)
class Row:
    """A run and one of its figures."""

    run: str
    figure: dict[str, Any] | None
    step: int
    """The checkpoint's that was measured; what it had seen, and in how many seconds, belongs to it."""
    last_step: int
    parameters: int
    bytes_seen: int | None
    """Unknown, as the seconds are, where the log has lost its lines."""
    seconds: float | None
    flops: int
    """What the figure took for a byte, forward: windows that overlap compute a byte more than once."""
    memory: int | None
    """The most that was resident while it trained; unknown until it has ended."""

    @property
    def speed(self) -> float | None:
        """Bytes learnt from per second."""
        return self.bytes_seen / self.seconds if self.bytes_seen and self.seconds else None

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
    and whether the text can be restored from the tokens agree. Of each kind a run's own figure counts, else its best as
    the recipe measures; a run stands in the largest group it has a figure for.
    """
    require_different(paths)
    figures = {path: _figures(Run.existing(path)) for path in paths}
    waiting = list(paths)
    groups: list[Group] = []
    while waiting:
        keys = {key for path in waiting for key in figures[path]}
        if not keys:
            rows = tuple(_row(path, None) for path in waiting)
            groups.append(Group("nothing yet", "no figure was measured", rows))
            break
        # The largest group; of equal ones one whose text can be restored, then the one on more bytes.
        key = max(keys, key=lambda k: (sum(k in figures[p] for p in waiting), k.exact, k.bytes, k))
        members = [path for path in waiting if key in figures[path]]
        rows = tuple(sorted((_row(path, figures[path][key]) for path in members), key=lambda row: row.value))
        first = groups[0].rows[0].figure if groups else None
        groups.append(Group(*_told(figures[members[0]][key], first), rows))
        waiting = [path for path in waiting if path not in members]
    return groups


class Key(NamedTuple):
    """What two figures must share to be ranked."""

    sha256: str
    bytes: int
    unit: str
    adapts: bool
    exact: bool


def _figures(run: Run) -> dict[Key, dict[str, Any]]:
    """One figure of every comparable kind: what the run is worth, not what was measured last."""
    own = run.own_figure()
    # Evaluations during training are the recipe's way; before the first there is only the protocol's name.
    usual = next((e for e in reversed(run.events()) if e["event"] == "evaluated"), own)
    name = run.recipe.evaluate.protocol

    def unlike_the_runs_own(figure: dict[str, Any]) -> tuple[bool, bool, float]:
        as_usual = measured_alike(figure, usual) if usual else figure["protocol"]["name"] == name
        return figure != own, not as_usual, figure["value"]

    found: dict[Key, dict[str, Any]] = {}
    for figure in sorted(run.figures(), key=unlike_the_runs_own):
        if "curve" not in figure["protocol"]:
            found.setdefault(_key(figure), figure)
    return found


def _key(figure: dict[str, Any]) -> Key:
    adapts = figure["protocol"].get("adapts", False)
    return Key(figure["corpus"]["sha256"], figure["bytes"], figure["unit"], adapts, figure["tokens"]["exact"])


def _told(figure: dict[str, Any], first: dict[str, Any] | None) -> tuple[str, str]:
    """What a group was measured on, and in what it differs from the first; nothing is said in both."""
    corpus, exact = figure["corpus"], figure["tokens"]["exact"]
    bytes_ = counted(figure["bytes"], "byte")
    measured_on = f"{corpus['name']} {corpus['split']}, {bytes_}, sha256 {corpus['sha256'][:12]}"
    if not exact and (first is None or not first["tokens"]["exact"]):
        measured_on += "; not lossless"
    return measured_on, _difference(first, figure) if first else ""


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    parts = []
    if one["corpus"]["sha256"] != other["corpus"]["sha256"]:
        parts.append("other bytes were scored")
    elif one["bytes"] != other["bytes"]:
        parts.append(f"divided by {counted(other['bytes'], 'byte')}, not {one['bytes']:,}")
    if one["protocol"].get("adapts", False) != other["protocol"].get("adapts", False):
        parts.append("one adapts while it is measured, the other does not")
    if one["tokens"]["exact"] and not other["tokens"]["exact"]:
        parts.append("not lossless: the text cannot be restored from its tokens")
    elif other["tokens"]["exact"] and not one["tokens"]["exact"]:
        parts.append("lossless: the text can be restored from its tokens")
    elif one["unit"] != other["unit"]:
        parts.append(f"in {other['unit']}")
    return "; ".join(parts)


def _row(path: str, figure: dict[str, Any] | None) -> Row:
    run = Run(path)
    facts = describe(path)
    events = run.events()
    begun: dict[str, Any] = {"step": 0, "bytes": 0, "seconds": 0.0}
    steps = [begun, *(e for e in events if e["event"] == "step")]
    measured = figure["model"]["step"] if figure and figure["model"]["step"] is not None else None
    last = max(steps[-1]["step"], measured or 0)
    step = last if measured is None else measured
    logged = {0, *(e["step"] for e in events if e["event"] in ("step", "skipped"))}
    at = next(e for e in reversed(steps) if e["step"] <= step) if step in logged else {}
    ended: dict[str, Any] = next((e for e in reversed(events) if e["event"] == "finished"), {})
    return Row(
        run=path,
        figure=figure,
        step=step,
        last_step=last,
        parameters=facts["parameters"]["in use"],
        bytes_seen=at.get("bytes"),
        seconds=at.get("seconds"),
        flops=round(facts[f"flops_per_{unit_of(run.recipe)}"]["forward"] * _computed(figure)),
        memory=ended.get("memory"),
    )


def _computed(figure: dict[str, Any] | None) -> float:
    """How often a model computes for a byte: once a token, and in windows that overlap window / stride times that."""
    if figure is None:
        return 1.0
    protocol = figure["protocol"]
    again = protocol["window"] / protocol["stride"] if protocol.get("stride") and protocol.get("window") else 1.0
    return float(figure["tokens"]["scored"] / figure["bytes"] * again)

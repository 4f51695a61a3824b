"""Runs side by side: a table for the terminal, and a page with the curves."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.counted import in_seconds
from headcount.learn.run import Run
from headcount.show.curves import curves
from headcount.show.page import Section, escape, page, table
from headcount.use.compare import Group, Row

COLUMNS = (
    "run",
    "bits per byte",
    "parameters in use",
    "bytes seen",
    "seconds",
    "bytes/s",
    "FLOPs per byte",
    "memory",
    "measured with",
)
UNKNOWN = "unknown"
EXPLAINED = (
    "FLOPs per byte are what the figure took, forward: where windows are recomputed, window / stride times those of a "
    "single pass. Bytes and seconds are those of the step that was measured, memory is the most of the whole training."
)


def cells(row: Row) -> list[str]:
    """One run as text, in the order of the columns."""
    return [
        row.run,
        f"{row.value:.4f}" if row.figure else "none",
        f"{row.parameters:,}",
        UNKNOWN if row.bytes_seen is None else f"{row.bytes_seen:,}",
        UNKNOWN if row.seconds is None else in_seconds(row.seconds),
        UNKNOWN if row.speed is None else f"{row.speed:,.0f}",
        f"{row.flops / 1e6:,.2f} M",
        f"{row.memory / 2**20:,.0f} MiB" if row.memory else UNKNOWN,
        _measured_with(row),
    ]


def _measured_with(row: Row) -> str:
    """Streams, window and stride: shown, though they do not forbid a comparison; the step where it is not the last."""
    if row.figure is None:
        return ""
    protocol = row.figure["protocol"]
    step = f"step {row.step:,} of {row.last_step:,}, " if row.step != row.last_step else ""
    window = f", window {protocol['window']:,}" if protocol.get("window") else ""
    stride = f", stride {protocol['stride']:,}" if protocol.get("stride") else ""
    return f"{step}{protocol['name']}, {protocol['streams']} stream{'s' * (protocol['streams'] != 1)}{window}{stride}"


def heading(group: Group, number: int) -> str:
    """What the rows of a group are to each other and to the first group, in a few words."""
    alone = len(group.rows) == 1
    if group.rows[0].figure is None:
        return "Without a figure"
    if number:
        return "Not comparable with the first" if alone else "Comparable among themselves, not with the first"
    return "Alone: nothing to rank it with" if alone else "Comparable, best first"


def told(group: Group) -> list[str]:
    """The sentences below a heading: in what the group differs, and what it was measured on."""
    if group.rows[0].figure is None:
        return []
    sentences = [group.differs] if group.differs else []
    return [f"{said[0].upper()}{said[1:]}." for said in (*sentences, f"measured on {group.measured_on}")]


def compared_page(groups: Sequence[Group]) -> str:
    """Tables of what may be ranked, and the curves of all."""
    sections = []
    for number, group in enumerate(groups):
        body = table([cells(row) for row in group.rows], COLUMNS, range(1, 8), cards=True)
        if group is groups[-1]:
            body += f"<p class=about>{escape(EXPLAINED)}</p>"
        sections.append(Section(heading(group, number), escape(" ".join(told(group))), body))
    runs = [row.run for group in groups for row in group.rows]
    plot = curves([(name, Run(name).events()) for name in runs])
    about = "Validation is marked."
    if len(groups) > 1:
        about += " Curves are drawn together even where the figures may not be ranked."
    return page("Headcount: runs side by side", [*sections, Section("Learning", about, plot)], wide=True)

"""Runs side by side: a table for the terminal, and a page with the curves."""

from __future__ import annotations

from collections.abc import Sequence

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


def cells(row: Row) -> list[str]:
    """One run as text, in the order of the columns."""
    return [
        row.run,
        f"{row.value:.4f}" if row.figure else "none",
        f"{row.parameters:,}",
        f"{row.bytes_seen:,}",
        f"{row.seconds:,.0f}",
        f"{row.speed:,.0f}",
        f"{row.flops / 1e6:,.2f} M",
        f"{row.memory / 2**20:,.0f} MiB" if row.memory else "unknown",
        _measured_with(row),
    ]


def _measured_with(row: Row) -> str:
    """Streams, window and stride: shown, though they do not forbid a comparison."""
    if row.figure is None:
        return ""
    protocol = row.figure["protocol"]
    window = f", window {protocol['window']:,}" if protocol.get("window") else ""
    stride = f", stride {protocol['stride']:,}" if protocol.get("stride") else ""
    return f"{protocol['name']}, {protocol['streams']} stream{'s' * (protocol['streams'] != 1)}{window}{stride}"


def compared_page(groups: Sequence[Group]) -> str:
    """Tables of what may be ranked, and the curves of all."""
    sections = []
    for group in groups:
        title = f"Not comparable: {group.differs}" if group.differs else "Comparable, best first"
        body = table([cells(row) for row in group.rows], COLUMNS, range(1, 8), cards=True)
        sections.append(Section(title, escape(group.measured_on), body))
    runs = [row.run for group in groups for row in group.rows]
    plot = curves([(name, Run(name).events()) for name in runs])
    about = "Validation is marked. Curves are drawn together even where the figures may not be ranked."
    return page("Headcount: runs side by side", [*sections, Section("Learning", about, plot)])

"""How much context the three desk models use: four measurements of the same runs on one page.

    python -m benchmarks.contexts RUN RUN RUN

The runs are those of benchmarks.comparison, one of each model; the bytes are of the test split. It measures what
`headcount evaluate RUN … --curve context --split test`, `--curve window --limit 131072`, `headcount probe copy` and
`headcount recl --most 1024` print with that split. Writes docs/results/contexts.md, and contexts.html with the plots.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from headcount.learn.malloc import keep_freed_memory
from headcount.show.contexts import columns, length_rows, marks, rows, sections
from headcount.show.page import Section, escape, page, table
from headcount.use.context import (
    Asked,
    Curves,
    Group,
    Lengths,
    by_context,
    by_window,
    copying,
    effective_lengths,
    gather,
)

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SPLIT = "test"
LONGEST = 1_024
"""Bytes that the walk of effective lengths goes to at most: to 4,096 it would read sixteen times as much."""
WINDOW_BYTES = 131_072
"""Of the split, for the curve by window, which reads all of them once for every window."""


def windowed(paths: Sequence[str]) -> Group:
    """The runs that have a window to change; the others' lengths are in their weights."""
    group = gather(paths, Asked(split=SPLIT))
    have = [str(lm.path) for lm in group.models if hasattr(lm.model.config, "window")]
    return gather(have, Asked(split=SPLIT, limit=WINDOW_BYTES))


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]


def write(curves: Sequence[Curves], found: Lengths) -> None:
    """Both pages."""
    weights = [f"{curve.run} {curve.model['sha256'][:12]}" for curve in curves[0].curves]
    lines = [
        "# How much context the desk models use",
        "",
        f"Written by `python -m benchmarks.contexts` on {date.today()} from runs of docs/results/comparison.md.",
        "Plots: contexts.html. Bits per byte, with standard errors where they are means over positions or trials.",
        f"Weights: {', '.join(weights)}.",
    ]
    for one in curves:
        lines += ["", f"## By {one.along}", "", f"{one.about}.", "", *markdown(columns(one), rows(one)), ""]
        lines += [f"{sentence}." for sentence in marks(one)]
    head, *body = length_rows(found)
    lines += ["", "## Effective length", "", f"{found.about}.", "", *markdown(head, body)]
    (RESULTS / "contexts.md").write_text("\n".join(lines) + "\n")
    told = Section("Effective length", f"{escape(found.about)}.", table(body, head, range(1, len(head))))
    parts = [part for one in curves for part in sections(one)]
    (RESULTS / "contexts.html").write_text(page("How much context the desk models use", [*parts, told]))


def main() -> None:
    """Measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="one run of each model")
    paths = parser.parse_args().runs
    keep_freed_memory()

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    group = gather(paths, Asked(split=SPLIT))
    curves = [
        by_context(group, most=None, positions=None, tell=tell),
        by_window(windowed(paths), most=None, how={}, tell=tell),
        copying(group, most=None, tell=tell),
    ]
    write(curves, effective_lengths(group, start=100, step=100, most=LONGEST, positions=None, tell=tell))


if __name__ == "__main__":
    main()

"""headcount compare."""

from __future__ import annotations

import json as jsons
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Json, Output


def compare(
    *runs: Annotated[str, Parameter(help="run folders")],
    output: Output = None,
    json: Json = False,
) -> None:
    """Runs side by side: a table, and a page with their curves; what cannot be ranked is not.

    The page is compare.html; with --json there is one only if --output names it.
    """
    from headcount import durable
    from headcount.errors import RequestError
    from headcount.show.compared import COLUMNS, cells, compared_page
    from headcount.use.compare import compare as grouped
    from headcount.use.train import say

    if not runs:
        raise RequestError("name the runs to compare")
    groups = grouped(runs)
    if json:
        print(jsons.dumps([asdict(group) for group in groups]))
    else:
        for group in groups:
            title = f"Not comparable with these: {group.differs}" if group.differs else "Comparable, best first"
            print(f"{title}\nmeasured on {group.measured_on}\n")
            print(_aligned([list(COLUMNS), *(cells(row) for row in group.rows)]) + "\n")
    file = output or (None if json else Path("compare.html"))
    if file is not None:
        durable.write_text(file, compared_page(groups))
        say(f"{file}: the curves")


def _aligned(rows: list[list[str]]) -> str:
    """Columns under each other: the first and the last to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return "\n".join(
        "  ".join(
            c.ljust(w) if i in (0, last) else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )

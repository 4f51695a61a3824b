"""headcount report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Output


def report(
    *runs: Annotated[str, Parameter(help="run folders; several are drawn together")],
    output: Output = None,
) -> None:
    """One self-contained HTML page: the figure, the curves, what was written, where the bits go, what it is made of."""
    from headcount.cli.pages import put, say_damage
    from headcount.errors import RequestError
    from headcount.show.report import report as page

    if not runs:
        raise RequestError("name one or more runs")
    file = output or (Path(runs[0]) / "report.html" if len(runs) == 1 else Path("report.html"))
    content = page(runs)
    say_damage(runs)
    put(content, file)

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
    from headcount.cli.pages import aligned, beside, put_beside, refuse_both, say_damage
    from headcount.errors import RequestError
    from headcount.show.compared import COLUMNS, EXPLAINED, cells, compared_page, heading, told
    from headcount.use.compare import compare as grouped

    if not runs:
        raise RequestError("name the runs to compare")
    refuse_both(output, json)
    groups = grouped(runs)
    say_damage(runs)
    if json:
        print(jsons.dumps([asdict(group) for group in groups]))
    else:
        for number, group in enumerate(groups):
            table = aligned([list(COLUMNS), *(cells(row) for row in group.rows)], left=(0, len(COLUMNS) - 1))
            said = "\n".join([heading(group, number), *told(group)])
            print(f"{said}\n\n{table}\n", file=beside(output))
        print(f"{EXPLAINED}\n", file=beside(output))
    put_beside(lambda: compared_page(groups), output or (None if json else Path("compare.html")))

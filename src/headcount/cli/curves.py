"""What `evaluate --curve` and `probe` do with their curves."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headcount.use.context import Curves


def put_curves(curves: Curves, output: Path | None, json: bool) -> None:
    """A table, or JSON; and a page named after the axis, with JSON only if it was named."""
    from headcount.cli.pages import aligned, beside, put_beside
    from headcount.show.contexts import columns, curves_page, marks, rows

    if json:
        print(jsons.dumps(curves.to_dict(), allow_nan=False))
    else:
        table = aligned([columns(curves), *rows(curves)], left=())
        said = "".join(f"\n{sentence}" for sentence in marks(curves))
        print(f"{curves.unit} by {curves.along} · {curves.about}\n\n{table}\n{said}", file=beside(output))
    put_beside(lambda: curves_page(curves), output or (None if json else Path(f"{curves.along}.html")))

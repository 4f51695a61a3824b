"""headcount probe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headcount.cli.options import Device, Json, Output


def probe(
    what: Annotated[Literal["copy"], Parameter(help="plant a random word early, begin it again late")],
    /,
    *sources: Annotated[str, Parameter(help="runs, or packed files")],
    most: Annotated[int | None, Parameter(help="the longest distance; 1,024 if the text has it")] = None,
    trials: Annotated[int, Parameter(help="random words for every distance")] = 256,
    text: Annotated[Path | None, Parameter(help="plant them in this file instead of the runs' own corpus")] = None,
    split: Annotated[str | None, Parameter(help="of the corpus: train, valid or test; valid")] = None,
    output: Output = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Does a model copy a word that it has read once? The gain in bits per byte, by distance.

    Prints a table and writes a page, distance.html (--output).
    """
    from headcount.cli.curves import put_curves
    from headcount.cli.pages import refuse_both
    from headcount.use.context import Asked, copying, gather
    from headcount.use.train import say

    refuse_both(output, json)
    group = gather(sources, Asked(text, split), device=device)
    put_curves(copying(group, most=most, trials=trials, tell=say), output, json)

"""headcount recl."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Device, Json


def recl(
    *sources: Annotated[str, Parameter(help="runs, or packed files: the group that is compared")],
    start: Annotated[int, Parameter(help="the context to begin with")] = 100,
    step: Annotated[int, Parameter(help="by how many bytes it grows: Δ")] = 100,
    most: Annotated[int | None, Parameter(help="the longest context; 4,096 if the text has it")] = None,
    positions: Annotated[int | None, Parameter(help="bytes that are scored; 2,048")] = None,
    text: Annotated[Path | None, Parameter(help="measure on this file instead of the runs' own corpus")] = None,
    split: Annotated[str | None, Parameter(help="of the corpus: train, valid or test; valid")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Relative effective context length (Dai et al. 2019): how far back each run gains, measured against the group.

    In bytes, on the hardest tenth, the harder half and all of the positions. It depends on which runs are compared.
    """
    from headcount.cli.pages import aligned
    from headcount.show.contexts import length_rows
    from headcount.use.context import RESTARTS, Asked, effective_lengths, gather
    from headcount.use.train import say

    group = gather(sources, Asked(text, split), device=device)
    found = effective_lengths(group, start=start, step=step, most=most, positions=positions, tell=say)
    if json:
        print(jsons.dumps(found.to_dict()))
        return
    print(f"{found.about}\n")
    print(aligned(length_rows(found)))
    for run, end in found.restart.items():
        print(f"\n{run} {RESTARTS}: {end:,}")

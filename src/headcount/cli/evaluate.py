"""headcount evaluate."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Checkpoint, Device, Json, Source


def evaluate(
    source: Source,
    /,
    *,
    text: Annotated[Path | None, Parameter(help="measure on this file instead of the run's own corpus")] = None,
    split: Annotated[str, Parameter(help="train, valid or test")] = "valid",
    protocol: Annotated[str | None, Parameter(help="carried, merity2019; the recipe's by default")] = None,
    window: Annotated[int | None, Parameter(help="a window other than the model's own")] = None,
    limit: Annotated[int | None, Parameter(help="only the first bytes")] = None,
    checkpoint: Checkpoint = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Measure bits per byte; the figure is printed with its protocol and kept in the run."""
    from headcount.use.load import load

    lm = load(source, checkpoint=checkpoint, device=device)
    figure = lm.evaluate(text, split=split, protocol=protocol, window=window, limit=limit)
    print(jsons.dumps(figure.to_dict()) if json else figure)

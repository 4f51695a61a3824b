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
    protocol: Annotated[
        str | None, Parameter(help="carried, merity2019, dai2019, alrfou2018, sliding-S; the recipe's by default")
    ] = None,
    segment: Annotated[int | None, Parameter(help="bytes fed at once, other than the protocol's")] = None,
    window: Annotated[int | None, Parameter(help="a window other than the model's own")] = None,
    clamp: Annotated[int | None, Parameter(help="Transformer-XL: distances beyond it count as it")] = None,
    limit: Annotated[int | None, Parameter(help="only the first bytes")] = None,
    checkpoint: Checkpoint = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Measure bits per byte; the figure is printed with its protocol and kept in the run."""
    from headcount.use.load import load

    lm = load(source, checkpoint=checkpoint, device=device)
    how = {"protocol": protocol, "segment": segment, "window": window, "clamp": clamp, "limit": limit}
    figure = lm.evaluate(text, split=split, **how)
    print(jsons.dumps(figure.to_dict()) if json else figure)

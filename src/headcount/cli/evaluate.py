"""headcount evaluate."""

from __future__ import annotations

import json as jsons
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headcount.cli.options import Checkpoint, Device, Json, Output


def evaluate(
    *sources: Annotated[str, Parameter(help="a run folder, or a file made by `headcount pack`; several with --curve")],
    text: Annotated[Path | None, Parameter(help="measure on this file instead of the run's own corpus")] = None,
    split: Annotated[str | None, Parameter(help="of the corpus: train, valid or test; valid")] = None,
    protocol: Annotated[
        str | None, Parameter(help="carried, merity2019, dai2019, alrfou2018, sliding-S; the recipe's by default")
    ] = None,
    segment: Annotated[int | None, Parameter(help="bytes fed at once, other than the protocol's")] = None,
    window: Annotated[int | None, Parameter(help="a window other than the model's own")] = None,
    clamp: Annotated[int | None, Parameter(help="Transformer-XL: distances beyond it count as it")] = None,
    limit: Annotated[int | None, Parameter(help="only the first bytes")] = None,
    curve: Annotated[
        Literal["context", "window"] | None, Parameter(help="a curve over 1, 2, 4 … bytes instead of one figure")
    ] = None,
    most: Annotated[int | None, Parameter(help="--curve: the longest context or window; 4,096")] = None,
    positions: Annotated[int | None, Parameter(help="--curve context: bytes that are scored; 2,048")] = None,
    output: Output = None,
    checkpoint: Checkpoint = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Measure bits per byte; the figure is printed with its protocol and kept in the run.

    --curve context feeds exactly so many bytes to an empty state; --curve window evaluates the first 65,536 bytes, or
    --limit, with other windows. Both print a table and write a page, context.html or window.html (--output).
    """
    how = {"protocol": protocol, "segment": segment, "clamp": clamp}
    if curve is None:
        _refuse({"most": most, "positions": positions, "output": output}, "belongs to --curve")
        _figure(sources, text, split, {**how, "window": window, "limit": limit}, (checkpoint, device), json)
        return
    from headcount.cli.curves import put_curves
    from headcount.cli.pages import refuse_both
    from headcount.use.context import WINDOW_BYTES, Asked, by_context, by_window, gather
    from headcount.use.train import say

    refuse_both(output, json)
    outside = {"window": window, **(how if curve == "context" else {"positions": positions})}
    _refuse(outside, f"does not belong to --curve {curve}")
    asked = Asked(text, split, limit if limit is not None or curve == "context" else WINDOW_BYTES)
    group = gather(sources, asked, checkpoint=checkpoint, device=device)
    if curve == "context":
        curves = by_context(group, most=most, positions=positions, tell=say)
    else:
        curves = by_window(group, most=most, how=how, tell=say)
    put_curves(curves, output, json)


def _figure(
    sources: tuple[str, ...],
    text: Path | None,
    split: str | None,
    how: Mapping[str, Any],
    which: tuple[str | None, str | None],
    json: bool,
) -> None:
    from headcount.errors import RequestError
    from headcount.use.load import load

    if len(sources) != 1:
        raise RequestError("name the run to measure; several are for --curve")
    figure = load(sources[0], checkpoint=which[0], device=which[1]).evaluate(text, split=split, **how)
    print(jsons.dumps(figure.to_dict()) if json else figure)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Options that would say nothing here."""
    from headcount.errors import RequestError

    for name, value in options.items():
        if value is not None:
            raise RequestError(f"--{name} {why}")

"""headcount resume."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Device, Json
from headcount.cli.train import conclude


def resume(
    run: Annotated[Path, Parameter(help="the run's folder")],
    /,
    *,
    steps: Annotated[int | None, Parameter(help="train to this many steps in all")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Go on with a run, exact to the bit."""
    from headcount.use import train as training

    conclude(training.resume(run, steps=steps, device=device), json=json)

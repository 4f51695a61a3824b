"""headcount train."""

from __future__ import annotations

import json as jsons
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headcount.cli.options import STANDARD_INPUT, Device, Json

if TYPE_CHECKING:
    from headcount.learn.run import Run


def train(
    *what: Annotated[
        str, Parameter(help="a recipe (.toml), or texts: files, folders, globs, archives; - is standard input")
    ],
    run: Annotated[Path | None, Parameter(help="the run's folder; runs/NAME by default")] = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", help="table.key=value, over the recipe's")] = (),
    steps: Annotated[int | None, Parameter(help="steps in all")] = None,
    minutes: Annotated[float | None, Parameter(help="or as many steps as fit")] = None,
    from_: Annotated[Path | None, Parameter(name="--from", help="start from the weights of a run (fine-tune)")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Train a recipe, or texts with a desk recipe sized to them."""
    from headcount.use import train as training

    sources = ["-" if given == STANDARD_INPUT else given for given in what]
    done = training.train(*sources, run=run, set=set_, steps=steps, minutes=minutes, start_from=from_, device=device)
    conclude(done, json=json)


def conclude(run: Run, *, json: bool) -> None:
    """The figure of a run that has ended, its report, and what to type next."""
    from headcount.measure.figure import Figure
    from headcount.use.train import say

    figure, place = run.own_figure(), shlex.quote(str(run.path))
    reported = _write_report(run)  # before anything is printed, which fails where nobody reads it
    if figure:
        print(jsons.dumps(figure) if json else Figure(**figure), flush=True)
    say(reported)
    say("\nWhat to type next:")
    for command, about in (
        (f"generate {place} 'Once '", "let it write"),
        (f"evaluate {place}", "the figure on all held-out text"),
        (f"score {place} FILE --html", "a text coloured by bits"),
        (f"resume {place} --steps {2 * (run.recipe.train.steps or 0)}", "train twice as long"),
    ):
        say(f"  headcount {command:<{len(place) + 24}}{about}")


def _write_report(run: Run) -> str:
    """The report beside the run, and a sentence about it; a disk that does not take it must not make a finished
    training look failed.
    """
    from headcount import durable
    from headcount.show.report import report

    file = run.path / "report.html"
    try:
        durable.write_text(file, report([run.path]))
    except (OSError, UnicodeError) as error:
        return f"the report could not be written to {file}: {getattr(error, 'strerror', None) or error}"
    return f"\nThe report, for a browser: {file}"

"""headcount inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headcount.cli.options import Checkpoint, Device, Output, Source


def inspect(
    what: Annotated[Literal["attention", "neurons"], Parameter(help="where the heads look, or what units follow")],
    source: Source,
    text: Annotated[str, Parameter(help="a file; - is standard input")],
    /,
    *,
    limit: Annotated[int, Parameter(help="only the first bytes of the text")] = 3000,
    output: Output = None,
    checkpoint: Checkpoint = None,
    device: Device = None,
) -> None:
    """Look inside a model while it reads a text: a page to click on (attention.html, neurons.html in the run)."""
    from headcount.cli.pages import put
    from headcount.cli.score import open_text
    from headcount.errors import RequestError
    from headcount.show import inspected
    from headcount.use import inspect as inside
    from headcount.use.load import load

    if not 1 <= limit <= 20_000:
        raise RequestError(f"--limit {limit}: must be from 1 to 20,000")
    read = open_text(text)[:limit].tobytes()
    lm = load(source, checkpoint=checkpoint, device=device)
    if what == "attention":
        page = inspected.attention_page(lm, read, inside.heads(lm, read))
    else:
        page = inspected.neurons_page(lm, read, inside.units(lm, read))
    file = output or (Path(source) / f"{what}.html" if lm.run else Path(f"{what}.html"))
    put(page, file)

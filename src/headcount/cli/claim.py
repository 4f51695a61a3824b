"""headcount claim."""

from __future__ import annotations

import json as jsons
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Device, Json


def claim(
    name: Annotated[str, Parameter(help="which one: `headcount claims` lists them")],
    *,
    text: Annotated[tuple[str, ...], Parameter(help="files, folders, globs, archives: joined")] = (),
    corpus: Annotated[str | None, Parameter(help="or a corpus by name")] = None,
    run: Annotated[Path | None, Parameter(help="where its runs, JSON and page go; runs/claim-NAME by default")] = None,
    minutes: Annotated[float | None, Parameter(help="the whole budget")] = None,
    bytes_: Annotated[int | None, Parameter(name="--bytes", help="or the bytes that a training reads")] = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", help="table.key=value, over what is trained")] = (),
    device: Device = None,
    json: Json = False,
) -> None:
    """Test what a paper claims: train what is needed, measure it, and say what came out."""
    from headcount.claims import claim_called
    from headcount.claims.contract import PAGE, Setting
    from headcount.errors import RequestError
    from headcount.tables import CorpusTable
    from headcount.use.train import say

    tested = claim_called(name)
    if bool(text) == bool(corpus):
        raise RequestError("name a text with --text, or a corpus with --corpus")
    table = CorpusTable(name=corpus) if corpus else CorpusTable(path=text)
    folder = run or Path("runs") / f"claim-{name}"
    setting = Setting(corpus=table, folder=folder, minutes=minutes, bytes=bytes_, set=set_, device=device)
    result = tested.run(setting)
    print(jsons.dumps(result.record, allow_nan=False) if json else result.verdict)
    say(f"\nThe page, for a browser: {folder / PAGE}")

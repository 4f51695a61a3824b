"""headcount pack."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Checkpoint, Source


def pack(
    source: Source,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the file to write")],
    checkpoint: Checkpoint = None,
) -> None:
    """Put the finished model into one safetensors file, which every command takes in place of a run."""
    from headcount.counted import counted
    from headcount.use.load import load

    size = load(source, checkpoint=checkpoint, device="cpu").save(output)
    print(f"{output}: {counted(size, 'byte')}", file=sys.stderr)

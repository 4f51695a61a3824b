"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

STANDARD_INPUT = "<standard input>"
STANDARD_OUTPUT = "<standard output>"
"""What stands for a lone `-` behind the parser, which would take it for an option."""

Source = Annotated[str, Parameter(help="a run folder, or a file made by `headcount pack`")]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"], help="the file to write")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="print JSON")]
Device = Annotated[str | None, Parameter(name="--device", help="cpu, cuda …; the best there is by default")]
Checkpoint = Annotated[str | None, Parameter(name="--checkpoint", help="best (default, else last), last, or a step")]

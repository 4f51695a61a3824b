"""Where a page goes and what is printed beside it, and tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TextIO


def to_standard_output(file: Path | None) -> bool:
    """Whether a name stands for standard output: a lone `-`, or /dev/stdout."""
    from headcount import durable
    from headcount.cli.options import STANDARD_OUTPUT

    return file is not None and (str(file) == STANDARD_OUTPUT or durable.descriptor_of(file) == 1)


def put(page: str, file: Path) -> None:
    """Write a page and say where it is, unless it goes to standard output."""
    from headcount import durable

    if to_standard_output(file):
        sys.stdout.flush()
        sys.stdout.buffer.write(page.encode(errors="backslashreplace"))  # UTF-8, whatever the terminal speaks
        return
    durable.write_text(file, page)
    print(file)


def put_beside(make: Callable[[], str], file: Path | None) -> None:
    """Write a page beside what is printed, if it is wanted, and say so on standard error."""
    from headcount import durable
    from headcount.use.train import say

    if file is None:
        return
    if to_standard_output(file):
        put(make(), file)
    else:
        durable.write_text(file, make())
        say(f"{file}: the curves")


def beside(page: Path | None) -> TextIO:
    """Where a table is printed: a page that goes to standard output must be alone there."""
    return sys.stderr if to_standard_output(page) else sys.stdout


def refuse_both(page: Path | None, json: bool) -> None:
    """A page and JSON cannot both go to standard output."""
    from headcount.errors import RequestError

    if json and to_standard_output(page):
        raise RequestError("--json and a page on standard output contradict each other: name a file with --output")


def say_damage(runs: Sequence[str]) -> None:
    """What was passed over in these runs' logs and figures, on standard error."""
    from headcount.learn.run import Run
    from headcount.use.train import say

    for run in runs:
        for sentence in Run(run).damage():
            say(sentence)


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Columns under each other: some to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )

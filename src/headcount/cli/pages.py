"""Where a page goes, and tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path


def put(page: str, file: Path) -> None:
    """Write a page and say where it is, unless it goes to standard output."""
    from headcount import durable
    from headcount.cli.options import STANDARD_OUTPUT

    if str(file) == STANDARD_OUTPUT:
        sys.stdout.write(page)
        return
    durable.write_text(file, page)
    print(file)


def put_beside(make: Callable[[], str], file: Path | None) -> None:
    """Write a page beside what is printed, if it is wanted, and say so on standard error."""
    from headcount import durable
    from headcount.use.train import say

    if file is not None:
        durable.write_text(file, make())
        say(f"{file}: the curves")


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Columns under each other: some to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )

"""Where a page goes."""

from __future__ import annotations

import sys
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

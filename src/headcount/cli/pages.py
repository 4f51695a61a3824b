"""Where a page goes."""

from __future__ import annotations

import sys
from pathlib import Path


def put(page: str, file: Path) -> None:
    """Write a page and say where it is; `-` is standard output."""
    from headcount import durable

    if str(file) == "-":
        sys.stdout.write(page)
        return
    durable.write_text(file, page)
    print(file)

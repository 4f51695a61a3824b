"""What a person sees while a corpus is fetched or made: a bar on a terminal, now and then a line in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

SECONDS_BETWEEN_LINES = 30.0


@contextlib.contextmanager
def shown(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how many of `total` bytes are done; what is given is called with that number, as often as one likes."""
    if not sys.stderr.isatty():
        yield _lines(what, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(what: str, total: int | None) -> Callable[[int], None]:
    """What takes long says so in a log too; what does not stays silent."""
    due = time.monotonic() + SECONDS_BETWEEN_LINES

    def show(done: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + SECONDS_BETWEEN_LINES
            of = f" of {total / 1e6:,.0f}" if total else ""
            say(f"{what}: {done / 1e6:,.0f}{of} MB")

    return show


def say(line: str) -> None:
    """A line for a person, if one is still there."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)

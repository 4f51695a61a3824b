"""Where prepared corpora lie, and one process at a time that makes one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from headcount import durable
from headcount.errors import RequestError
from headcount.text.progress import say

LOCKS = ".locks"


def cache_folder() -> Path:
    """The folder of prepared corpora: `HEADCOUNT_CACHE`, or the system's own place for caches."""
    import pooch

    folder = Path(os.environ.get("HEADCOUNT_CACHE") or pooch.os_cache("headcount"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot make the cache folder {folder}: {error.strerror}; set HEADCOUNT_CACHE") from error
    return folder


@contextlib.contextmanager
def making(name: str) -> Iterator[Path]:
    """Hold the right to make or fetch what is called `name`; gives its path in the cache.

    The system's lock ends with its holder, so nobody waits for a process that was killed. Its file stays, in a folder
    of its own: who removed it could take it from another who waits for it.
    """
    import filelock

    kept = cache_folder() / name
    locks = kept.with_name(LOCKS)
    locks.mkdir(exist_ok=True)
    lock = filelock.FileLock(locks / name)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        say(f"waiting: another process is making {name}")
        lock.acquire()
    try:
        for leftover in kept.parent.glob(f"{durable.TEMPORARY}*-{name}"):  # of a killed one: nobody else may write it
            leftover.unlink()
        yield kept
    finally:
        lock.release()

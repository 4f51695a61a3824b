"""One process at a time on a run: the operating system's file lock, and a record of who holds it.

The system lets go of its lock when the holder dies, so that nothing is stale after a kill. On network file systems
where such locks lie, the record (process, boot, start time) is believed if its process is still alive.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from headcount import durable
from headcount.errors import BusyError


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock on a run folder, or raise `BusyError` at once and name the holder."""
    lock, record = FileLock(folder / ".lock"), folder / ".holder.json"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(f"{folder} is in use by {_describe(record)}") from None
    try:
        holder = _read(record)
        if holder and holder.get("pid") != os.getpid() and holder == _identity(int(holder.get("pid", 0))):
            raise BusyError(f"{folder} is in use by {_describe(record)}")
        durable.write_json(record, _identity(os.getpid()))
        try:
            yield
        finally:
            record.unlink(missing_ok=True)
    finally:
        lock.release()


def _identity(pid: int) -> dict[str, Any]:
    """What tells a process from a later one with the same number."""
    found: dict[str, Any] = {"pid": pid, "boot": "", "started": ""}
    with contextlib.suppress(OSError, IndexError):  # /proc is Linux's; elsewhere the system's lock stands alone
        found["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        found["started"] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return found if found["started"] else {"pid": pid, "gone": True}


def _read(record: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(record.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _describe(record: Path) -> str:
    holder = _read(record)
    return f"process {holder.get('pid')}" if holder else "another process"

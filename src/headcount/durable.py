"""Files that are whole or not there: written under a temporary name, flushed to the disk, renamed.

A reader sees the old content or the new, whatever moment the process died at. Temporary names begin with a dot and
carry the writer's process number, so that what a killed writer left behind can be told from what is being written.

Only regular files are replaced so. A link stays one: what it leads to is replaced. Devices, pipes and open files of
this process (/dev/null, a FIFO, /dev/stdout) are written into as they are: in their place a file is something else.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp-"
MOST_LINKS = 40
"""That are followed one after the other, as by the system."""


def temporary_name(path: Path) -> Path:
    """A hidden name beside `path`, this process's own."""
    return path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")


def flush_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system can."""
    if os.name == "nt":  # Windows cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def descriptor_of(path: Path) -> int | None:
    """The number of this process's open file that a name stands for, as /dev/stdout and /dev/fd/3 do."""
    folders = (Path("/dev/fd"), Path("/dev/fd").resolve())
    for _ in range(MOST_LINKS):
        if path.name.isdecimal() and path.parent.resolve() in folders:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def write(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a whole file, or leave what was there; what is not a regular file is written into."""
    try:
        target = _replaceable(path)
        if target is None:
            _pour(path, chunks)
        else:
            _replace(target, chunks)
    except OSError as error:
        ours = error.filename is None or Path(os.fsdecode(error.filename)).name.startswith(TEMPORARY)
        if error.errno is None or not ours:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # what was asked for, not our name beside it


def _replaceable(path: Path) -> Path | None:
    """The regular file, there or not yet, that a name leads to; None if it leads to something else."""
    if descriptor_of(path) is not None:
        return None
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        is_file = True
    return (path.resolve() if path.is_symlink() else path) if is_file else None


def _pour(path: Path, chunks: Iterable[bytes]) -> None:
    """Write into what is there, whatever it is; nothing is made or emptied."""
    descriptor = descriptor_of(path)
    with os.fdopen(os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor), "wb") as file:
        file.writelines(chunks)


def _replace(path: Path, chunks: Iterable[bytes]) -> None:
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    flush_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a whole text file, or leave what was there."""
    write(path, [text.encode("utf-8")])


def write_json(path: Path, value: Any) -> None:
    """Write a whole JSON file, or leave what was there; NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def sweep(folder: Path) -> None:
    """Remove what writers that are gone left behind in `folder`; the caller holds the lock on it."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()

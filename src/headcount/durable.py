"""Files that are whole or not there: written under a temporary name, flushed to the disk, renamed.

A reader sees the old content or the new, whatever moment the process died at. Temporary names begin with a dot and
carry the writer's process number, so that what a killed writer left behind can be told from what is being written.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp-"


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


def write(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a whole file, or leave what was there."""
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
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

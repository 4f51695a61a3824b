"""Texts as they lie on the disk: files, folders, globs and archives become one file, mapped and never read whole.

One plain file is used where it lies. Everything else is joined into the cache under the sha256 of the whole: what was
named in the order it was named, what is in a folder, a glob or an archive sorted by name.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from glob import glob, has_magic
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from headcount import durable
from headcount.errors import RequestError
from headcount.text import archives
from headcount.text.cache import cache_folder

Bytes = npt.NDArray[np.uint8]


def map_file(path: Path) -> Bytes:
    """The bytes of a regular file that is not empty, memory-mapped."""
    _require_file(path)
    try:
        return np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error


def file_sha256(path: Path) -> str:
    """The hash that a corpus is known by."""
    return file_hash(path, "sha256")


def file_hash(path: Path, kind: str) -> str:
    """The hash of a file in hexadecimal; `kind` is one that hashlib knows."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def open_text(text: str | Path) -> Bytes:
    """A text that somebody names, mapped: a file, or whatever else `gather` takes."""
    return map_file(gather([str(text)]))


def stem(text: str) -> str:
    """What a run on this text is called after."""
    path = Path(text)
    name = path.parent.name if has_magic(path.name) else path.name
    return "text" if has_magic(name) else Path(archives.plain_name(name)).stem or "text"


def gather(paths: Sequence[str]) -> Path:
    """One file of all that is named: itself if it is one plain file, else joined in the cache."""
    files = [file for path in paths for file in _expanded(path)]
    if len(files) == 1 and not archives.is_packed(files[0]):
        _require_file(files[0])
        return files[0]
    if any(archives.is_packed(file) for file in files):
        return keep_by_record("joined", files, chain.from_iterable(map(_pieces, files)))
    digest, size = hashlib.sha256(), 0
    for file in files:
        for piece in _pieces(file):
            digest.update(piece)
            size += len(piece)
    kept = cache_folder() / f"{digest.hexdigest()}.bytes"
    return kept if kept.is_file() and kept.stat().st_size == size else keep(chain.from_iterable(map(_pieces, files)))


def gone(paths: Sequence[str]) -> str | None:
    """The first of these that leads nowhere."""
    return next((path for path in paths if not Path(path).exists() and not _matches(path)), None)


def keep_piped(stream: BinaryIO) -> Path:
    """Keep what came through a pipe under its hash, so that the run can be resumed."""
    first = stream.read(1 << 20)
    if not first:
        raise RequestError("standard input is empty")
    return keep(chain([first], iter(lambda: stream.read(1 << 20), b"")))


def keep(chunks: Iterable[bytes]) -> Path:
    """Write chunks into the cache under the hash of the whole."""
    digest = hashlib.sha256()
    temporary = durable.temporary_name(cache_folder() / "joined")

    def hashed() -> Iterator[bytes]:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk

    durable.write(temporary, hashed())
    return temporary.replace(cache_folder() / f"{digest.hexdigest()}.bytes")


def keep_by_record(name: str, files: Sequence[Path], chunks: Iterable[bytes]) -> Path:
    """What is made of these files, made once: a small record in the cache says which hash it has.

    The files are known by place, size and times, so that they need not be unpacked to know that nothing changed.
    """
    record = cache_folder() / f"{name}-{mark_of(files)}.sha256"
    if record.is_file():
        known = record.read_text().strip()
        kept = cache_folder() / f"{known}.bytes"
        if kept.is_file() and file_sha256(kept) == known:
            return kept
    kept = keep(chunks)
    durable.write_text(record, kept.stem + "\n")
    return kept


def mark_of(files: Sequence[Path]) -> str:
    """What files are known by without being read: place, size and times."""
    facts = [file.stat() for file in files]
    listing = "\n".join(
        f"{file.absolute()} {fact.st_size} {fact.st_mtime_ns} {fact.st_ctime_ns}"
        for file, fact in zip(files, facts, strict=True)
    )
    return hashlib.sha256(os.fsencode(listing)).hexdigest()[:16]


def stdlib_sources(root: Path) -> list[Path]:
    """The library's `.py` files without site-packages and tests, sorted by relative path."""
    left_out = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
    sources = (path for path in root.rglob("*.py") if not left_out & set(path.relative_to(root).parts[:-1]))
    return sorted(sources, key=lambda path: path.relative_to(root).as_posix())


def find_stdlib(paths: Sequence[str]) -> Path:
    """The library's sources, joined once for each interpreter.

    A path replaces the library: "stdlib" is only what is read if nothing else is named.
    """
    if paths:
        return gather(paths)
    root = Path(sysconfig.get_path("stdlib"))
    sources = stdlib_sources(root)
    if not sources:
        raise RequestError(f"no Python sources below {root}: name a text of your own with corpus.path")
    return keep_by_record("stdlib", sources, (path.read_bytes() for path in sources))


def _expanded(text: str) -> list[Path]:
    """The files that a path means: itself, those in a folder, those that a glob matches."""
    path = Path(text)
    if path.is_dir():
        found = [
            Path(folder) / name
            for folder, folders, names in os.walk(path, topdown=True)
            for name in names
            if _is_visible(Path(folder, name).relative_to(path).as_posix())
        ]
        what = f"{path} is a folder without texts in it"
    else:
        return [Path(name) for name in matched([text])]
    return _sorted(found, what)


def matched(paths: Sequence[str]) -> list[str]:
    """Paths, with the files that match in the place of every glob."""
    found = []
    for path in paths:
        if Path(path).exists() or not has_magic(path):
            found.append(path)
        else:
            found += map(str, _sorted(_matches(path), f"{path}: nothing matches"))
    return found


def _sorted(found: Sequence[Path], none: str) -> list[Path]:
    """The files that hold something, by name; `none` is said if there are none."""
    kept = [file for file in found if file.is_file() and file.stat().st_size]
    if not kept:
        raise RequestError(none)
    return sorted(kept, key=lambda file: file.as_posix())


def _matches(pattern: str) -> list[Path]:
    return [Path(name) for name in glob(pattern, recursive=True)]  # noqa: PTH207 (a Path's cannot be absolute)


def _is_visible(name: str) -> bool:
    """Not what begins with a dot, nor what one system leaves in the archives of another."""
    return not any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _require_file(path: Path) -> None:
    if not path.exists():
        raise RequestError(f"{path}: no such file")
    if not path.is_file():
        raise RequestError(f"{path} is not a regular file; train, score, inspect and corpus take a pipe as -")
    if path.stat().st_size == 0:
        raise RequestError(f"{path} is empty")


def _pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, or of all files in a packed one."""
    _require_file(path)
    if not archives.is_packed(path):
        yield from archives.chunks(path)
        return
    empty = True
    for name, content in archives.files(path):
        if _is_visible(name):
            for chunk in content:
                empty = False
                yield chunk
    if empty:
        raise RequestError(f"{path} holds no text")

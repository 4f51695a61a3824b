"""Corpora that are one published file, known by the md5 that was published with it: enwik8, enwik9, text8.

A file that somebody names, plain or packed, and a download are verified alike: by the md5 of what is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headcount import durable
from headcount.errors import DataError, RequestError
from headcount.text import archives, download
from headcount.text.cache import cache_folder, making
from headcount.text.progress import say
from headcount.text.sources import file_hash, map_file, mark_of


@dataclass(frozen=True)
class Published:
    """Where a file is to be had, and what it must be."""

    url: str
    md5: str


FILES = {
    "enwik8": Published("https://mattmahoney.net/dc/enwik8.zip", "a1fa5ffddb56f4953e226637dabbb36a"),
    "enwik9": Published("https://mattmahoney.net/dc/enwik9.zip", "e206c3450ac99950df65bf70ef61a12d"),
    "text8": Published("https://mattmahoney.net/dc/text8.zip", "3bea1919949baf155f99411df5fada7e"),
}


def md5(path: Path) -> str:
    """The hash that these files were published with."""
    return file_hash(path, "md5")


def named_file(name: str, paths: Sequence[str]) -> Path:
    """The one file that `corpus.path` names."""
    if len(paths) > 1:
        raise RequestError(f"corpus.path: {name} is one file")
    map_file(Path(paths[0]))
    return Path(paths[0])


def is_ready(name: str) -> bool:
    """Whether it lies in the cache."""
    return (cache_folder() / name).is_file()


def find(name: str, paths: Sequence[str]) -> Path:
    """The verified file: the one that is named, else the one in the cache, else a download."""
    if paths:
        return identify(named_file(name, paths), (name,))[1]
    with making(name) as kept:
        if kept.is_file():
            if md5(kept) == FILES[name].md5:
                return kept
            say(f"{kept} is damaged; it is made again")
        fetched = download.fetch(FILES[name].url, name, None)
        try:
            return _unpack(fetched, kept, (name,))[1]
        except DataError:
            fetched.unlink()  # a download that is damaged is fetched again next time
            raise


def identify(source: Path, names: Sequence[str]) -> tuple[str, Path]:
    """Which of the published files a file is or holds, whatever the cache has, and where it lies unpacked."""
    if not archives.is_packed(source):
        found = md5(source)
        for name in names:
            if FILES[name].md5 == found:
                return name, source
        raise DataError(f"{source} is not {' or '.join(names)}: its md5 is {found}, not {FILES[names[0]].md5}")
    with making(names[0]) as kept:
        record = cache_folder() / f"packed-{mark_of([source])}.md5"  # so that it is unpacked once, not at every use
        known = record.read_text().strip() if record.is_file() else None
        for name in names:
            unpacked = kept.with_name(name)
            if FILES[name].md5 == known and unpacked.is_file() and md5(unpacked) == known:
                return name, unpacked
        name, unpacked = _unpack(source, kept, names)
        durable.write_text(record, FILES[name].md5 + "\n")
        return name, unpacked


def _unpack(source: Path, kept: Path, names: Sequence[str]) -> tuple[str, Path]:
    """Unpack one of the published files into the cache, under its own name: which one it is, and where it lies."""
    unpacked = durable.temporary_name(kept)
    try:
        with unpacked.open("wb") as file:
            for chunk in archives.only_file(source):
                file.write(chunk)
        found = md5(unpacked)
        for name in names:
            if FILES[name].md5 == found:
                return name, unpacked.replace(kept.with_name(name))
        raise DataError(f"{source} does not hold {' or '.join(names)}: md5 {found}, not {FILES[names[0]].md5}")
    finally:
        unpacked.unlink(missing_ok=True)

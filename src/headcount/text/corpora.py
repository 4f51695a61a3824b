"""Where the bytes come from: a corpus is one file on the disk, known by its sha256, and three parts of it.

`stdlib` is embedded: the running interpreter's own library sources, real text that every machine has. `enwik8` comes
from a local file or is downloaded, and is verified by hash. Any other text is named by its path. Nothing is read into
memory: splits are slices of a memory map.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
import sysconfig
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from headcount import durable
from headcount.errors import DataError, RequestError, nearest
from headcount.tables import CorpusTable

Bytes = npt.NDArray[np.uint8]
SPLITS = ("train", "valid", "test")
DEFAULT_SPLIT = (0.9, 0.05, 0.05)
LEAST_BYTES = 1_024

ENWIK8_MD5 = "a1fa5ffddb56f4953e226637dabbb36a"
ENWIK8_URL = "http://mattmahoney.net/dc/enwik8.zip"


@dataclass(frozen=True)
class Corpus:
    """One file, its hash, and where train, valid and test end in it."""

    name: str
    file: Path
    sha256: str
    ends: tuple[int, ...]

    def split(self, name: str) -> Bytes:
        """The bytes of a split, memory-mapped."""
        if name not in SPLITS:
            raise RequestError(f"--split {name}: {nearest(name, SPLITS)}")
        index = SPLITS.index(name)
        begin = self.ends[index - 1] if index else 0
        end = self.ends[min(index, len(self.ends) - 1)]
        if index >= len(self.ends) or end <= begin:
            raise RequestError(f"the corpus {self.name} has no {name} split")
        return map_file(self.file)[begin:end]


@dataclass(frozen=True)
class Entry:
    """A corpus that is known by name."""

    about: str
    find: Callable[[tuple[str, ...]], Path]
    """The corpus's file, verified, made or fetched if need be; the argument is `corpus.path`."""
    ready: Callable[[], bool]
    """Whether it is there without fetching anything."""


def cache_folder() -> Path:
    """Where prepared corpora lie: `HEADCOUNT_CACHE`, or the system's own place for caches."""
    import pooch

    folder = Path(os.environ.get("HEADCOUNT_CACHE") or pooch.os_cache("headcount"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot make the cache folder {folder}: {error.strerror}; set HEADCOUNT_CACHE") from error
    return folder


def open_corpus(table: CorpusTable) -> Corpus:
    """The corpus that a recipe names, verified against the hash that the recipe gives, if it gives one."""
    if table.name not in CORPORA:
        raise RequestError(f"corpus.name = {table.name!r}: {nearest(table.name, CORPORA)}")
    kept = cache_folder() / f"{table.sha256}.bytes"  # an older Python's library is still there by its hash
    if not table.paths and table.sha256 and kept.is_file() and file_sha256(kept) == table.sha256:
        file, found = kept, table.sha256
    else:
        if table.sha256 and (gone := [path for path in table.paths if not Path(path).exists()]):
            raise RequestError(
                f"{gone[0]}: no such file; if it moved, corpus.path may say where: its hash is what counts"
            )
        file = CORPORA[table.name].find(table.paths)
        found = file_sha256(file)
    if table.sha256 not in (None, found):
        raise RequestError(f"{file} has changed: its sha256 is {found}, the recipe says {table.sha256}")
    return Corpus(display_name(table), file, found, _ends(file.stat().st_size, table.split or DEFAULT_SPLIT))


def display_name(table: CorpusTable) -> str:
    """What a figure calls the corpus: its name, or plain text if a path replaces the library."""
    return "text" if table.name == "stdlib" and table.paths else table.name


def map_file(path: Path) -> Bytes:
    """The bytes of a regular file that is not empty, memory-mapped."""
    if path.is_dir():
        raise RequestError(f"{path} is a folder: name the files in it")
    if not path.exists():
        raise RequestError(f"{path}: no such file")
    if not path.is_file():
        raise RequestError(f"{path} is not a regular file: pipe it in and name it -")
    if path.stat().st_size == 0:
        raise RequestError(f"{path} is empty")
    try:
        return np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error


def file_sha256(path: Path) -> str:
    """The hash that a corpus is known by."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep_piped(stream: BinaryIO) -> Path:
    """Keep what came through a pipe under its hash, so that the run can be resumed."""
    first = stream.read(1 << 20)
    if not first:
        raise RequestError("standard input is empty")
    return _keep(chain([first], iter(lambda: stream.read(1 << 20), b"")))


def _ends(size: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Where the splits end: shares of the size, rounded; the last takes the rest."""
    ends = [round(size * sum(shares[: i + 1])) for i in range(len(shares))]
    return (*ends[:-1], size)


def _texts(paths: tuple[str, ...]) -> Path:
    """One file as it is, or several joined into the cache, once, under the hash of the whole."""
    maps = [map_file(Path(path)) for path in paths]
    if len(paths) == 1:
        return Path(paths[0])
    digest = hashlib.sha256()
    for text in maps:
        digest.update(text.data)
    kept = cache_folder() / f"{digest.hexdigest()}.bytes"
    if kept.is_file() and kept.stat().st_size == sum(map(len, maps)):
        return kept
    return _keep(text[i : i + (1 << 20)].tobytes() for text in maps for i in range(0, len(text), 1 << 20))


def _keep(chunks: Iterator[bytes]) -> Path:
    """Write chunks into the cache under the hash of the whole."""
    digest = hashlib.sha256()
    temporary = durable.temporary_name(cache_folder() / "joined")

    def hashed() -> Iterator[bytes]:
        for chunk in chunks:
            digest.update(chunk)
            yield chunk

    durable.write(temporary, hashed())
    return temporary.replace(cache_folder() / f"{digest.hexdigest()}.bytes")


def stdlib_sources(root: Path) -> list[Path]:
    """The library's `.py` files without site-packages and tests, sorted by relative path."""
    left_out = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
    sources = (path for path in root.rglob("*.py") if not left_out & set(path.relative_to(root).parts[:-1]))
    return sorted(sources, key=lambda path: path.relative_to(root).as_posix())


def _find_stdlib(paths: tuple[str, ...]) -> Path:
    """Join the sources once for each interpreter; a small record beside the text says which hash it has.

    A path replaces the library: "stdlib" is only what is read if nothing else is named.
    """
    if paths:
        return _texts(paths)
    root = Path(sysconfig.get_path("stdlib"))
    sources = stdlib_sources(root)
    if not sources:
        raise RequestError(f"no Python sources below {root}: name a text of your own with corpus.path")
    listing = "\n".join(f"{p.relative_to(root).as_posix()} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in sources)
    record = cache_folder() / f"stdlib-{hashlib.sha256(listing.encode()).hexdigest()[:16]}.sha256"
    if record.is_file():
        known = record.read_text().strip()
        kept = cache_folder() / f"{known}.bytes"
        if kept.is_file() and file_sha256(kept) == known:
            return kept
    kept = _keep(path.read_bytes() for path in sources)
    durable.write_text(record, kept.stem + "\n")
    return kept


def _find_enwik8(paths: tuple[str, ...]) -> Path:
    """The verified enwik8 in the cache; made from `corpus.path` (plain, .gz or .zip) or from a download."""
    kept = cache_folder() / "enwik8"
    if not paths and kept.is_file():
        if _md5(kept) == ENWIK8_MD5:
            return kept
        print(f"{kept} is damaged; it is made again", file=sys.stderr)
    if len(paths) > 1:
        raise RequestError("corpus.path: enwik8 is one file")
    source = Path(paths[0]) if paths else _download(ENWIK8_URL, "enwik8", kept)
    map_file(source)
    if source.suffix not in (".gz", ".zip"):
        if _md5(source) != ENWIK8_MD5:
            raise DataError(f"{source} is not enwik8: its md5 is {_md5(source)}, not {ENWIK8_MD5}")
        return source
    if paths and kept.is_file() and _md5(kept) == ENWIK8_MD5:
        return kept  # unpacked before
    try:
        return _unpack_enwik8(source, kept)
    except DataError:
        if not paths:
            source.unlink()  # a download that is damaged is fetched again next time
        raise


def _unpack_enwik8(source: Path, kept: Path) -> Path:
    unpacked = durable.temporary_name(kept)
    try:
        with _unpacking(source) as packed, unpacked.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
        if _md5(unpacked) != ENWIK8_MD5:
            raise DataError(f"{source} does not hold enwik8: md5 {_md5(unpacked)}, not {ENWIK8_MD5}")
        return unpacked.replace(kept)
    except (EOFError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{source} is damaged: {error}") from error
    finally:
        unpacked.unlink(missing_ok=True)


def _unpacking(source: Path) -> BinaryIO:
    """The one file inside a .gz or .zip."""
    if source.suffix == ".gz":
        return cast(BinaryIO, gzip.open(source))
    archive = zipfile.ZipFile(source)
    names = archive.namelist()
    if len(names) != 1:
        raise DataError(f"{source} holds {len(names)} files, not the one that is wanted")
    return cast(BinaryIO, archive.open(names[0]))


def _download(url: str, name: str, kept: Path) -> Path:
    """Fetch with pooch; what is fetched is verified by whoever unpacks it."""
    import pooch

    try:
        return Path(pooch.retrieve(url, known_hash=None, fname=Path(url).name, path=kept.parent, progressbar=False))
    except OSError as error:  # requests' errors are OSErrors
        raise RequestError(
            f"cannot download {name} ({type(error).__name__}): put the file at {kept}, or name it with corpus.path"
        ) from None


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


CORPORA = {
    "stdlib": Entry(
        "the running Python's own library sources: real text that every machine has", _find_stdlib, lambda: True
    ),
    "enwik8": Entry(
        "the first 10^8 bytes of an English Wikipedia dump, split 90/5/5 million",
        _find_enwik8,
        lambda: (cache_folder() / "enwik8").is_file(),
    ),
}

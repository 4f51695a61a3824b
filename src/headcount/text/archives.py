"""Packed files as streams of bytes: .gz .bz2 .xz .zst, and the files inside a .zip or a .tar of any of them.

Nothing is ever written under a name that an archive gives: names decide what is taken and in which order, the bytes go
where the caller puts them. Links, devices and names that point outside are refused all the same, since somebody meant
harm by them. What unpacks to more than `RATIO` times its size is refused while it is unpacked. Whatever is torn or
damaged is a `DataError`.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import lzma
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO

from headcount.errors import DataError, RequestError
from headcount.text.cache import cache_folder

CHUNK = 1 << 20
RATIO = 200
"""Texts pack to a third or, if they repeat themselves, to a twentieth of their size; bombs to a thousandth and less."""
ALWAYS_ALLOWED = 1 << 26
"""Bytes below which the ratio does not matter: a small text of one letter is no bomb."""
MOST_BYTES = 1 << 38
MOST_FILES = 1_000_000
MOST_XZ_MEMORY = 1 << 28
"""What unpacking .xz may take: four times what `xz -9` asks for."""

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
SHORT_TARS = {".tgz": ".gz", ".tbz2": ".bz2", ".tbz": ".bz2", ".txz": ".xz", ".tzst": ".zst"}


def is_packed(path: Path) -> bool:
    """Whether a file's name says that it must be unpacked."""
    return path.suffix.lower() in (*COMPRESSED, *SHORT_TARS, ".zip", ".tar")


def plain_name(name: str) -> str:
    """A file's name without what says how it is packed."""
    while Path(name).suffix.lower() in (*COMPRESSED, *SHORT_TARS, ".zip", ".tar"):
        name = name[: -len(Path(name).suffix)]
    return name


def chunks(path: Path, seen: Callable[[int], None] = lambda place: None) -> Iterator[bytes]:
    """The bytes of a file, uncompressed if its name says so; `seen` is told how far the packed file is read."""
    if is_packed(path) and not path.stat().st_size:
        raise DataError(f"{path} is empty")
    with _damage_of(path), path.open("rb") as file:
        yield from _Bound(path).kept(_uncompressed(file, _compression(path), seen))


def files(path: Path, seen: Callable[[int], None] = lambda place: None) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files inside, sorted by name: each name and its bytes, which are read before the next pair is asked for.

    A compressed file that is no archive holds one file, whose name is its own without the ending; of it `seen` is told
    how far it is read.
    """
    kind = path.suffix.lower()
    if kind == ".zip":
        return _zipped(path)
    if kind == ".tar" or kind in SHORT_TARS or Path(path.stem).suffix.lower() == ".tar":
        return _tarred(path)
    return iter([(plain_name(path.name), chunks(path, seen))])


def only_file(path: Path, seen: Callable[[int], None] = lambda place: None) -> Iterator[bytes]:
    """The bytes of a plain or packed file, or of the one file inside an archive."""
    found = 0
    for _, content in files(path, seen):
        found += 1
        if found > 1:
            raise DataError(f"{path} holds several files, not the one that is wanted")
        yield from content
    if not found:
        raise DataError(f"{path} holds no file")


def _compression(path: Path) -> str:
    kind = path.suffix.lower()
    return SHORT_TARS.get(kind, kind)


def _uncompressed(file: BinaryIO, kind: str, seen: Callable[[int], None]) -> Iterator[bytes]:
    if kind in (".bz2", ".xz", ".zst"):
        yield from _streams(file, _decompressor(kind), seen)
        return
    reading: Any = gzip.GzipFile(fileobj=file) if kind == ".gz" else file
    while chunk := reading.read(CHUNK):
        seen(file.tell())
        yield chunk


def _decompressor(kind: str) -> Callable[[], Any]:
    if kind == ".bz2":
        return bz2.BZ2Decompressor
    if kind == ".xz":
        return lambda: lzma.LZMADecompressor(memlimit=MOST_XZ_MEMORY)
    for module in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            found: Callable[[], Any] = importlib.import_module(module).ZstdDecompressor
            return found
    raise RequestError("unpacking .zst needs Python 3.14, or: pip install backports.zstd")


def _streams(file: BinaryIO, new: Callable[[], Any], seen: Callable[[int], None]) -> Iterator[bytes]:
    """Streams packed one after another, as large dumps are; at most `CHUNK` bytes come out at a time."""
    packed = file.read(CHUNK)
    while packed:
        one = new()
        while not one.eof:
            if one.needs_input and not packed and not (packed := file.read(CHUNK)):
                raise EOFError("it ends in the middle")
            unpacked = one.decompress(packed, CHUNK)
            packed = b""
            seen(file.tell())
            if unpacked:
                yield unpacked
        packed = one.unused_data.lstrip(b"\0") or file.read(CHUNK).lstrip(b"\0")  # .xz may be padded with zeros


class _Bound:
    """Refuses what grows too much while it is unpacked, counted over all that comes out of one archive."""

    def __init__(self, path: Path) -> None:
        self.path, self.total = path, 0
        self.allowed = min(MOST_BYTES, max(ALWAYS_ALLOWED, RATIO * path.stat().st_size)) if is_packed(path) else None

    def kept(self, unpacked: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks as they come, until they are too many."""
        for chunk in unpacked:
            self.total += len(chunk)
            if self.allowed is not None and self.total > self.allowed:
                raise DataError(
                    f"{self.path} unpacks to more than {self.allowed / 1e6:,.0f} MB, which no text of its size does: "
                    "refused; unpack it yourself if you trust it"
                )
            yield chunk


def _read(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    with _damage_of(path):
        while chunk := file.read(CHUNK):
            yield chunk


def _zipped(path: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    with _damage_of(path), zipfile.ZipFile(path) as archive:
        inside = []
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            _require_harmless(path, info.filename, plain=kind in (0, stat.S_IFREG, stat.S_IFDIR))
            if info.flag_bits & 1:
                raise RequestError(f"{path} asks for a password: unpack it yourself")
            if not info.is_dir():
                inside.append(info)
        _require_names(path, [info.filename for info in inside])
        bound = _Bound(path)
        for info in sorted(inside, key=lambda info: info.filename):
            with archive.open(info) as file:
                yield info.filename, bound.kept(_read(path, file))


def _tarred(path: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    """A packed tar is unpacked into a nameless file first: its members are then read in any order."""
    with _damage_of(path), tempfile.TemporaryFile(dir=cache_folder()) as plain:
        for chunk in chunks(path):
            plain.write(chunk)
        plain.seek(0)
        with tarfile.TarFile(fileobj=plain) as archive:
            inside = []
            for member in archive:
                regular = member.isreg() and not member.issparse()
                _require_harmless(path, member.name, plain=regular or member.isdir())
                if regular:
                    inside.append(member)
            plain.seek(archive.offset)
            if plain.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):  # tarfile stops at a damaged header
                raise DataError(f"{path} is damaged: it ends in the middle, or a header in it is broken")
            _require_names(path, [member.name for member in inside])
            for member in sorted(inside, key=lambda member: member.name):
                reading = archive.extractfile(member)
                if reading is None:
                    raise DataError(f"{path}: {member.name} cannot be read")
                yield member.name, _read(path, reading)


def _require_harmless(path: Path, name: str, *, plain: bool) -> None:
    """Refuse links, devices, and names that point outside."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if not plain:
        raise DataError(f"{path} holds {name!r}, which is a link or a device: refused")
    if parts.is_absolute() or ".." in parts.parts or "\0" in name or name[1:2] == ":":
        raise DataError(f"{path} holds {name!r}, which points outside of it: refused")


def _require_names(path: Path, names: list[str]) -> None:
    """Refuse too many files, and two of one name: nobody could say which of them is meant."""
    if len(names) > MOST_FILES:
        raise DataError(f"{path} holds {len(names):,} files, more than {MOST_FILES:,}: refused")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{path} holds {name!r} twice: refused")
        seen.add(name)


@contextlib.contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """What the libraries say of damaged archives, as one kind of error."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise DataError(f"{path} is damaged: {str(error) or 'it ends in the middle'}") from error
    except (NotImplementedError, UnicodeDecodeError, struct.error, OverflowError, ValueError) as error:
        raise DataError(f"{path} cannot be unpacked: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the disk's; what gzip and bz2 say of bad data has no number
            raise
        raise DataError(f"{path} is damaged: {error}") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # two packages have one each
            raise
        raise DataError(f"{path} is damaged: {error}") from error

"""A corpus that is made: one file in the cache, and beside it a manifest that says what it is and where its parts end.

`NAME` is train ‖ valid ‖ test, `NAME.json` is the manifest: `sha256` and `bytes` of the whole, `parts` with the counts
of each, and whatever the maker says of where it came from. Nothing in it depends on the clock, the machine or where
it lies, so equal sources give equal bytes. The manifest is written last: without it there is no corpus.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headcount import durable
from headcount.errors import DataError, RequestError
from headcount.text import mapped
from headcount.text.cache import making
from headcount.text.sources import file_sha256, map_file
from headcount.version import __version__

SPLITS = ("train", "valid", "test")
EXPORTED_MANIFEST = "manifest.json"
"""Beside the parts of a corpus that is written out for other programs."""
_HASH = re.compile("[0-9a-f]{64}")
Counts = dict[str, int]


def manifest_file(file: Path) -> Path:
    """Where the manifest of a prepared file lies."""
    return file.with_name(f"{file.name}.json")


def read_manifest(file: Path) -> dict[str, Any] | None:
    """The manifest of a prepared file; None if it has none."""
    try:
        manifest = json.loads(manifest_file(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(f"{manifest_file(file)} is damaged: {error}") from error
    if not _is_manifest(manifest):
        raise DataError(f"{manifest_file(file)} is damaged: it is not the manifest of a corpus")
    return dict(manifest)


def _is_manifest(manifest: Any) -> bool:
    """Whether it has the parts of a corpus, and their sizes add up."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("parts"), dict):
        return False
    parts = manifest["parts"]
    if tuple(parts) not in (SPLITS, ("all",)) or not all(isinstance(part, dict) for part in parts.values()):
        return False
    sizes = [part.get("bytes") for part in parts.values()]
    return (
        all(isinstance(size, int) and size >= 0 for size in sizes)
        and sum(sizes) == manifest.get("bytes")
        and "sha256" in manifest
    )


def ends_of(manifest: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Where train, valid and test end; None if the corpus comes without parts of its own."""
    if tuple(manifest["parts"]) != SPLITS:
        return None
    sizes = [manifest["parts"][split]["bytes"] for split in SPLITS]
    return tuple(sum(sizes[: i + 1]) for i in range(len(sizes)))


def is_whole(file: Path) -> bool:
    """Whether a prepared file and its manifest are there and belong together."""
    try:
        manifest = read_manifest(file)
    except DataError:
        return False
    return manifest is not None and file.is_file() and file_sha256(file) == manifest["sha256"]


def write(file: Path, parts: Mapping[str, tuple[Iterable[bytes], Counts]], facts: Mapping[str, Any]) -> None:
    """Write a corpus and its manifest; the counts of a part may be filled while its bytes are read."""
    whole, sizes = hashlib.sha256(), dict.fromkeys(parts, 0)

    def joined() -> Iterator[bytes]:
        for name, (content, _) in parts.items():
            for chunk in content:
                whole.update(chunk)
                sizes[name] += len(chunk)
                yield chunk

    manifest_file(file).unlink(missing_ok=True)
    durable.write(file, joined())
    manifest = {
        **facts,
        "made_by": f"headcount {__version__}",
        "sha256": whole.hexdigest(),
        "bytes": sum(sizes.values()),
        "parts": {name: {"bytes": sizes[name], **counts} for name, (_, counts) in parts.items()},
    }
    durable.write_json(manifest_file(file), manifest)


def brought_back(folder: Path, corpus: str) -> Path:
    """The prepared file of a corpus that was exported into a folder: made again in the cache, and verified."""
    listed = folder / EXPORTED_MANIFEST
    try:
        manifest = json.loads(listed.read_text(encoding="utf-8"))
    except OSError:
        raise RequestError(f"{folder} is a folder without a {listed.name}: name what was made, or a dump") from None
    except ValueError as error:
        raise DataError(f"{listed} is damaged: {error}") from error
    if not _is_manifest(manifest) or tuple(manifest["parts"]) != SPLITS or not _HASH.fullmatch(str(manifest["sha256"])):
        raise DataError(f"{listed} is damaged: it is not the manifest of a corpus in three parts")
    if manifest.get("corpus") != corpus:
        raise RequestError(f"{folder} holds the corpus {manifest.get('corpus')}, not {corpus}")
    with making(f"exported-{manifest['sha256'][:24]}") as kept:
        if not is_whole(kept):
            files = [folder / f"{split}.txt" for split in SPLITS]
            try:
                sizes = [file.stat().st_size for file in files]
                full = [file for file, size in zip(files, sizes, strict=True) if size]
                durable.write(kept, (chunk for file in full for chunk in mapped.chunks(map_file(file))))
            except OSError as error:
                raise RequestError(f"{error.filename or kept}: {error.strerror}") from error
            if (
                sizes != [part["bytes"] for part in manifest["parts"].values()]
                or file_sha256(kept) != manifest["sha256"]
            ):
                kept.unlink()
                raise DataError(f"{folder} is damaged: its parts are not those that its {listed.name} is about")
            durable.write_json(manifest_file(kept), manifest)
        return kept


def counted(content: Iterator[bytes], counts: Counts) -> Iterator[bytes]:
    """The bytes as they come; afterwards their lines and words, split at ASCII white space, are in `counts`."""
    words, lines, inside = 0, 0, False
    for chunk in content:
        lines += chunk.count(b"\n")
        words += len(chunk.split()) - (inside and not chunk[:1].isspace())
        inside = not chunk[-1:].isspace()
        yield chunk
    counts.update(lines=lines, words=words)

"""Where the bytes come from: a corpus is one file on the disk, known by its sha256, and three parts of it.

`stdlib` is embedded: the running interpreter's own library sources, real text that every machine has. Others are
published (found, fetched, verified by hash) or made (with a manifest beside them); docs/corpora.md says of each where
it comes from. Any other text is named by its path. Nothing is read into memory: splits are slices of a memory map.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount import durable
from headcount.counted import counted
from headcount.errors import DataError, RequestError, nearest
from headcount.tables import CorpusTable
from headcount.text import mapped, prepared, published, sources, text8, wikipedia, wikitext
from headcount.text.cache import cache_folder
from headcount.text.prepared import SPLITS
from headcount.text.sources import Bytes, file_sha256, gather, keep_piped, map_file, open_text, stem

__all__ = [
    "CORPORA",
    "DEFAULT_SPLIT",
    "LEAST_BYTES",
    "SPLITS",
    "Bytes",
    "Corpus",
    "Entry",
    "cache_folder",
    "display_name",
    "export",
    "file_sha256",
    "gather",
    "keep_piped",
    "map_file",
    "open_corpus",
    "open_text",
    "stem",
]

DEFAULT_SPLIT = (0.9, 0.05, 0.05)
LEAST_BYTES = 1_024


@dataclass(frozen=True)
class Corpus:
    """One file, its hash, and where train, valid and test end in it."""

    name: str
    file: Path
    sha256: str
    ends: tuple[int, ...]
    shares: tuple[float, ...] | None = None
    """The shares that gave the ends; None if the corpus comes in parts of its own."""

    def split(self, name: str) -> Bytes:
        """The bytes of a split, memory-mapped."""
        if name not in SPLITS:
            raise RequestError(f"--split {name}: {nearest(name, SPLITS)}")
        part = self.parts().get(name)
        if part is None or not len(part):
            raise RequestError(f"the corpus {self.name} has no {name} split")
        return part

    def parts(self) -> dict[str, Bytes]:
        """The bytes of every part that it comes in, memory-mapped; a part may be empty."""
        whole = map_file(self.file)
        places = zip(SPLITS, (0, *self.ends), self.ends, strict=False)  # of two shares there is no test
        return {split: whole[begin:end] for split, begin, end in places}

    def lacks(self) -> str | None:
        """Why no model can be trained on it, if none can."""
        if self.ends[-1] < LEAST_BYTES:
            return f"{self.file} has {counted(self.ends[-1], 'byte')}: at least {LEAST_BYTES} are needed"
        empty = [split for split in SPLITS[:2] if not len(self.parts()[split])]
        return f"the corpus {self.name} has no {empty[0]} split" if empty else None

    def manifest(self) -> dict[str, Any]:
        """What is known of it: its own manifest if it was made, else its name, hash and parts."""
        own = prepared.read_manifest(self.file) or {}
        known: dict[str, Any] = {"corpus": self.name, "sha256": self.sha256, "bytes": self.ends[-1]}
        if self.shares is not None:
            known["parts"] = {split: {"bytes": len(part)} for split, part in self.parts().items()}
        return {**own, **known}


@dataclass(frozen=True)
class Entry:
    """A corpus that is known by name."""

    about: str
    find: Callable[[Sequence[str]], Path]
    """The corpus's file, verified, made or fetched if need be; the argument is `corpus.path`."""
    ready: Callable[[], bool]
    """Whether it is there without fetching anything."""


def open_corpus(table: CorpusTable) -> Corpus:
    """The corpus that a recipe names, verified against the hash that the recipe gives, if it gives one."""
    if table.name not in CORPORA:
        raise RequestError(f"corpus.name = {table.name!r}: {nearest(table.name, CORPORA)}")
    kept = cache_folder() / f"{table.sha256}.bytes"  # an older Python's library is still there by its hash
    if not table.paths and table.sha256 and kept.is_file() and file_sha256(kept) == table.sha256:
        file, found = kept, table.sha256
    else:
        if table.sha256 and (gone := sources.gone(table.paths)):
            raise RequestError(f"{gone}: no such file; if it moved, corpus.path may say where: its hash is what counts")
        file = CORPORA[table.name].find(sources.matched(table.paths))
        found = file_sha256(file)
    if table.sha256 not in (None, found):
        raise RequestError(f"{file} has changed: its sha256 is {found}, the recipe says {table.sha256}")
    ends = _own_ends(file, found)
    if ends is None:
        shares = table.split or DEFAULT_SPLIT
        return Corpus(display_name(table), file, found, _ends(file.stat().st_size, shares), shares)
    if table.split is not None:
        raise RequestError(
            f"corpus.split: {table.name} comes in a train, a valid and a test part of its own; leave corpus.split out"
        )
    return Corpus(display_name(table), file, found, ends)


def display_name(table: CorpusTable) -> str:
    """What a figure calls the corpus: its name, or plain text if a path replaces the library."""
    return "text" if table.name == "stdlib" and table.paths else table.name


def export(corpus: Corpus, folder: Path) -> None:
    """Write the parts of a corpus as files of their own, for other programs, and a manifest beside them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for split, part in corpus.parts().items():
            durable.write(folder / f"{split}.txt", mapped.chunks(part))
        durable.write_json(folder / prepared.EXPORTED_MANIFEST, corpus.manifest())
    except OSError as error:
        raise RequestError(f"cannot write to {folder}: {error.strerror}") from error


def _own_ends(file: Path, found: str) -> tuple[int, ...] | None:
    """Where the parts end that a corpus was made with."""
    manifest = prepared.read_manifest(file)
    if manifest is None:
        return None
    if manifest["sha256"] != found:
        raise DataError(f"{file} is damaged: its sha256 is {found}, its manifest says {manifest['sha256']}")
    return prepared.ends_of(manifest)


def _ends(size: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Where the splits end: shares of the size, rounded; the last takes the rest."""
    ends = [round(size * sum(shares[: i + 1])) for i in range(len(shares))]
    return (*ends[:-1], size)


def _published(about: str, name: str) -> Entry:
    return Entry(about, functools.partial(published.find, name), functools.partial(published.is_ready, name))


def _wikitext(about: str, name: str) -> Entry:
    return Entry(about, functools.partial(wikitext.find, name), functools.partial(wikitext.is_ready, name))


CORPORA = {
    "stdlib": Entry(
        "the running Python's own library sources: real text that every machine has", sources.find_stdlib, lambda: True
    ),
    "enwik8": _published("the first 10^8 bytes of an English Wikipedia dump, split 90/5/5 million", "enwik8"),
    "enwik9": _published("the first 10^9 bytes of the same dump, split 900/50/50 million", "enwik9"),
    "text8": Entry(
        "10^8 bytes of Wikipedia as lower-case letters and spaces", text8.find, lambda: text8.is_ready("text8")
    ),
    "text8-part": Entry(
        "what our filter for text8 makes of enwik8: shorter, and no published figure is on it",
        text8.find_part,
        lambda: text8.is_ready("text8-part"),
    ),
    "wikitext-2": _wikitext("2 million words of good Wikipedia articles, tokenised, with <unk>", "wikitext-2"),
    "wikitext-2-raw": _wikitext("the same text without <unk>", "wikitext-2-raw"),
    "wikitext-103": _wikitext("103 million words of good Wikipedia articles, tokenised, with <unk>", "wikitext-103"),
    "wikitext-103-raw": _wikitext("the same text without <unk>", "wikitext-103-raw"),
    "wikipedia": Entry(
        "any MediaWiki dump, by article: headcount corpus wikipedia --dump FILE.xml.bz2",
        wikipedia.find,
        wikipedia.is_ready,
    ),
}

"""WikiText-2 and WikiText-103 (Merity et al., 2017), tokenised and raw: three files each, joined as they are.

The tokenised forms have a closed vocabulary and keep their `<unk>`; the raw forms are the same text without it. They
come from a folder that holds `wiki.{train,valid,test}.tokens` (or `.raw`), plain or packed, or the published zip; from
these three files, from the zip itself, or from a download of it. Every part is known by its sha1, every zip by its
sha256.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath

from headcount.errors import DataError, RequestError
from headcount.text import archives, download, prepared
from headcount.text.cache import cache_folder, making
from headcount.text.prepared import SPLITS, Counts

ADDRESS = "https://wikitext.smerity.com"


@dataclass(frozen=True)
class Form:
    """One of the published forms."""

    zip: str
    sha256: str
    """Of the zip."""
    ending: str
    sha1: tuple[str, str, str]
    """Of train, valid and test."""


FORMS = {
    "wikitext-2": Form(
        "wikitext-2-v1.zip",
        "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
        "tokens",
        (
            "863f29c46ef9d167fff4940ec821195882fe29d1",
            "0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422",
            "c7b8ce0aa086fb34dab808c5c49224211eb2b172",
        ),
    ),
    "wikitext-2-raw": Form(
        "wikitext-2-raw-v1.zip",
        "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",
        "raw",
        (
            "d33faf256327882db0edc7c67cd098d1051a2112",
            "db78d4db83700cba1b1bf4a9381087043db2876d",
            "6f1fe2054a940eebfc76b284b09680763b37f5ea",
        ),
    ),
    "wikitext-103": Form(
        "wikitext-103-v1.zip",
        "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
        "tokens",
        (
            "b7497e2dfe77e72cfef5e3dbc61b7b53712ac211",
            "c326ac59dc587676d58c422eb8a03e119582f92b",
            "8a5befc548865cec54ed4273cf87dbbad60d1e47",
        ),
    ),
    "wikitext-103-raw": Form(
        "wikitext-103-raw-v1.zip",
        "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794",
        "raw",
        (
            "3d06627c15e834408cfee91293f862c11c1cc9ef",
            "db78d4db83700cba1b1bf4a9381087043db2876d",
            "6f1fe2054a940eebfc76b284b09680763b37f5ea",
        ),
    ),
}


def is_ready(name: str) -> bool:
    """Whether it lies in the cache."""
    return prepared.manifest_file(cache_folder() / name).is_file()


def find(name: str, paths: Sequence[str]) -> Path:
    """The prepared file in the cache, made if need be. Paths are verified also where it is there already."""
    for path in paths:
        if not Path(path).exists():
            raise RequestError(f"{path}: no such file")
    with making(name) as kept:
        if prepared.is_whole(kept):
            for content in _parts(name, paths).values() if paths else ():
                collections.deque(content, maxlen=0)  # read for its hash alone
            return kept
        form = FORMS[name]
        places = paths or [str(download.fetch(f"{ADDRESS}/{form.zip}", name, f"sha256:{form.sha256}"))]
        parts: dict[str, tuple[Iterator[bytes], Counts]] = {}
        for split, content in _parts(name, places).items():
            counts: Counts = {}
            parts[split] = prepared.counted(content, counts), counts
        prepared.write(kept, parts, {"corpus": name})
        return kept


def _parts(name: str, paths: Sequence[str]) -> dict[str, Iterator[bytes]]:
    """The bytes of train, valid and test, verified as they are read."""
    form = FORMS[name]
    return {
        split: _verified(_part(paths, f"wiki.{split}.{form.ending}", name), sha1, split)
        for split, sha1 in zip(SPLITS, form.sha1, strict=True)
    }


def _part(paths: Sequence[str], wanted: str, name: str) -> Iterator[bytes]:
    """The bytes of one of the three files, wherever among the paths it lies."""
    for path in map(Path, paths):
        # Of a folder only what has a published name: others may be large, and hold anything.
        names = (f"{wanted}*", FORMS[name].zip)
        found = [sorted(path.rglob(one)) for one in names] if path.is_dir() else [[path]]
        for file in chain.from_iterable(found):
            if archives.plain_name(file.name) == wanted and file.is_file():
                yield from archives.only_file(file)
                return
            if archives.is_packed(file) and file.is_file():
                for member, content in archives.files(file):
                    if PurePosixPath(member).name == wanted:
                        yield from content
                        return
    raise RequestError(f"{', '.join(paths)}: there is no {wanted}, which is a part of {name}")


def _verified(content: Iterator[bytes], sha1: str, split: str) -> Iterator[bytes]:
    """The bytes as they come; if their hash is not the published one, nothing is made of them."""
    digest = hashlib.sha1(usedforsecurity=False)
    for chunk in content:
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != sha1:
        raise DataError(f"the {split} part is not the published one: its sha1 is {digest.hexdigest()}, not {sha1}")

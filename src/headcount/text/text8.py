"""text8 by our own filter (Mahoney's rules, not his bytes): 10^8 bytes of lower-case letters and single spaces.

The published text8 is known by its md5. Where it is not to be had, the articles of enwik9 are rendered (wikimarkup.py),
addresses go, digits are spelled, every other byte is a space; the first 10^8 bytes are kept. What enwik8 gives is
shorter and is called `text8-part`: it is for trying things out and never stands beside published figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from headcount.errors import RequestError
from headcount.text import archives, prepared, published
from headcount.text.cache import cache_folder, making
from headcount.text.dumps import Dump
from headcount.text.progress import say, shown
from headcount.text.wikimarkup import render, words_of_namespaces

LENGTH = 100_000_000
OWN = "text8-own"
"""What our filter makes of enwik9, in the cache: the published file may lie beside it."""
RULES = 2
"""Raised whenever the filter gives other bytes: what older rules made is made again."""
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGITS = {ord("0") + value: f" {word} " for value, word in enumerate(_WORDS)}
_LETTERS = bytes(byte if chr(byte) in "abcdefghijklmnopqrstuvwxyz" else 32 for byte in range(256))
_ADDRESS = re.compile(r"\b(?:(?:https?|ftp)://|www\.)[^\s<>\[\]]*+", re.IGNORECASE)


def letters(text: str) -> bytes:
    """Words of a–z with one space before each."""
    spelled = _ADDRESS.sub(" ", text).translate(_DIGITS).encode("ascii", "replace")
    words = spelled.lower().translate(_LETTERS).split()
    return b"".join(b" " + word for word in words)


def filtered(chunks: Iterable[bytes], name: Path | str, length: int = LENGTH) -> Iterator[bytes]:
    """The first `length` bytes that the articles of a dump give; the dump may end in the middle of a page."""
    dump, done = Dump(name, may_be_cut=True), 0
    for article in dump.articles(chunks):
        made = letters(render(article.text, words_of_namespaces(dump.namespaces)))[: length - done]
        done += len(made)
        yield made
        if done == length:
            return


def is_ready(name: str) -> bool:
    """Whether it lies in the cache, published or ours."""
    return any((cache_folder() / file).is_file() for file in (name, OWN if name == "text8" else name))


def find(paths: Sequence[str]) -> Path:
    """The text8 that is named or that is made of what is named; else the published one, else ours."""
    if paths:
        source = published.named_file("text8", paths)
        if _is_ours(source, "enwik9"):
            return source
        found, plain = published.identify(source, ("text8", "enwik9", "enwik8"))
        if found == "enwik8":
            raise RequestError(f"{source} is enwik8: what is made of it is not text8; ask for text8-part")
        return plain if found == "text8" else _make(OWN, "enwik9", plain)
    with making("text8") as kept:
        if kept.is_file() and published.md5(kept) == published.FILES["text8"].md5:
            return kept
    with making(OWN) as kept:
        if _is_ours(kept, "enwik9"):
            return kept
    return _fetched_or_filtered()


def find_part(paths: Sequence[str]) -> Path:
    """What the filter makes of enwik8."""
    if paths:
        source = published.named_file("text8-part", paths)
        return source if _is_ours(source, "enwik8") else _make("text8-part", "enwik8", published.find("enwik8", paths))
    with making("text8-part") as kept:
        if _is_ours(kept, "enwik8"):
            return kept
    return _make("text8-part", "enwik8", published.find("enwik8", ()))


def _fetched_or_filtered() -> Path:
    try:
        return published.find("text8", ())
    except RequestError:
        if not published.is_ready("enwik9"):
            raise
    say("text8 cannot be fetched: it is made of the enwik9 that is here, by our own filter")
    return _make(OWN, "enwik9", published.find("enwik9", ()))


def _is_ours(kept: Path, of: str) -> bool:
    if not prepared.is_whole(kept):
        return False
    manifest = prepared.read_manifest(kept) or {}
    return (manifest.get("made_of"), manifest.get("rules")) == (published.FILES[of].md5, RULES)


def _make(name: str, of: str, source: Path) -> Path:
    with making(name) as kept, shown(f"making {name} of {of}", source.stat().st_size) as show:
        if not _is_ours(kept, of):
            facts = {"corpus": "text8" if name == OWN else name, "made_of": published.FILES[of].md5, "rules": RULES}
            content = filtered(archives.chunks(source, show), source)
            prepared.write(kept, {"all": (content, {})}, facts)
        return kept

"""A MediaWiki XML dump as a stream of articles, in constant memory, of any language and any encoding that XML knows.

An article is a page of namespace 0 that is no redirect. Old dumps (enwik8 is the beginning of one) have neither `<ns>`
nor `<redirect>`: there the namespaces that the dump lists, before a colon in the title, and `#REDIRECT` decide. Of
several revisions the last counts. The parser is expat; a document type is refused, so nothing can be declared that
grows while it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from headcount.errors import DataError, RequestError

MOST_CHARACTERS = 1 << 27
"""Of one page; MediaWiki itself takes two million."""
_COLLECTED = ("title", "ns", "text")
_REDIRECT = re.compile(r"\s*#\s*redirect", re.IGNORECASE)


@dataclass(frozen=True)
class Article:
    """One article."""

    title: str
    text: str
    place: int
    """The byte of the uncompressed XML at which its page begins."""
    passed: tuple[int, int]
    """Redirects and pages of other namespaces before it."""


class Dump:
    """Articles from chunks of XML; what is known of the site and of the pages passed over is in the attributes."""

    def __init__(self, name: Path | str, *, may_be_cut: bool = False) -> None:
        self.name, self.may_be_cut = name, may_be_cut
        self.namespaces: dict[int, set[str]] = {}
        """The names of every namespace but 0, by number."""
        self.redirects = self.other_pages = 0
        self.header: int | None = None
        """Bytes before the first page."""
        self._found: list[Article] = []
        self._depth = 0
        self._shift = 0
        self._place = 0
        self._key = 0
        self._text: list[str] = []
        self._length = 0
        self._page: dict[str, str] = {}
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = 1 << 20
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._refuse

    def articles(self, chunks: Iterable[bytes]) -> Iterator[Article]:
        """The articles of a whole dump."""
        for chunk in chunks:
            self._feed(chunk)
            yield from self._taken()
        if not self.may_be_cut:
            self._feed(b"", final=True)

    def articles_from(self, chunks: Iterable[bytes], header: int, place: int) -> Iterator[Article]:
        """The articles after the one whose page begins at byte `place`; `header` bytes come before the first page.

        What lies between is passed over without being parsed. From byte 0 on it is the whole dump.
        """
        self._shift = place - header
        for article in self.articles(_jumping(chunks, header, place)):
            if article.place != place:
                yield article

    def _taken(self) -> list[Article]:
        found, self._found = self._found, []
        return found

    def _feed(self, chunk: bytes, *, final: bool = False) -> None:
        try:
            self._parser.Parse(chunk, final)
        except (expat.ExpatError, ValueError, LookupError) as error:  # the latter of encodings that are none
            what = "ends in the middle" if final else "is not well-formed XML"
            raise DataError(f"{self.name} {what}: {error}") from error

    def _refuse(self, *_: object) -> None:
        raise DataError(f"{self.name} declares a document type, which no MediaWiki dump does: refused")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and tag != "mediawiki":
            raise RequestError(f"{self.name} is not a MediaWiki dump: it begins with <{tag}>")
        if tag == "page":
            if self.header is None:
                self.header = self._parser.CurrentByteIndex
            self._place = self._parser.CurrentByteIndex + self._shift
            self._page = {}
        elif tag == "redirect":
            self._page["redirect"] = ""
        elif tag == "namespace":
            self._key = int(attributes.get("key", 0))
            self._collect()
        elif tag in _COLLECTED:
            self._collect()

    def _collect(self) -> None:
        self._text, self._length = [], 0
        self._parser.CharacterDataHandler = self._take

    def _take(self, characters: str) -> None:
        self._length += len(characters)
        if self._length > MOST_CHARACTERS:
            raise DataError(f"{self.name}: a page at byte {self._place:,} has more than {MOST_CHARACTERS:,} characters")
        self._text.append(characters)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag in _COLLECTED:
            self._page[tag] = "".join(self._text)
        elif tag == "namespace":
            if self._key:
                self.namespaces.setdefault(self._key, set()).add("".join(self._text))
        elif tag == "page":
            self._end_page()
        else:
            return
        self._parser.CharacterDataHandler = None

    def _end_page(self) -> None:
        title, text = self._page.get("title", ""), self._page.get("text", "")
        if not self._is_of_main_namespace(title):
            self.other_pages += 1
        elif "redirect" in self._page or _REDIRECT.match(text):
            self.redirects += 1
        else:
            self._found.append(Article(title, text, self._place, (self.redirects, self.other_pages)))

    def _is_of_main_namespace(self, title: str) -> bool:
        if "ns" in self._page:
            return self._page["ns"].strip() == "0"
        prefix, colon, _ = title.partition(":")
        return not colon or not any(prefix in names for names in self.namespaces.values())


def _jumping(chunks: Iterable[bytes], header: int, place: int) -> Iterator[bytes]:
    """The first `header` bytes, and those from `place` on."""
    end = 0
    for chunk in chunks:
        begin, end = end, end + len(chunk)
        if begin < header:
            yield chunk[: header - begin]
        if end > place:
            yield chunk[max(0, place - begin) :]

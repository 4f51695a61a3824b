"""Dumps: articles and nothing else, in any encoding, from any place on, in little memory, safe from bombs."""

import pytest

from headcount.errors import DataError, RequestError
from headcount.text import dumps
from headcount.text.dumps import Dump
from tests.text.dump_maker import HEADER, dump, page

PAGES = [
    page("One", "'''One''' & <b>two</b>\n"),
    page("Talk:One", "chat", ns=1),
    page("Three: a title", "text of three"),
    page("Four", "#REDIRECT [[One]]"),
    page("Five", "see [[One]]", redirect=True),
    page("Шест", "шест — 6"),
]
ARTICLES = [
    ("One", "'''One''' & <b>two</b>\n"),
    ("Three: a title", "text of three"),
    ("Шест", "шест — 6"),
]


def read(content: bytes, size: int = 1_000, **how):
    reader = Dump("the dump", **how)
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    return [(a.title, a.text) for a in reader.articles(pieces)], reader


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_articles_and_nothing_else(size):
    found, reader = read(dump(*PAGES).encode(), size)
    assert found == ARTICLES and (reader.redirects, reader.other_pages) == (2, 1)
    assert reader.namespaces == {1: {"Talk"}, 6: {"Файл"}, 14: {"Категория"}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom", "utf-16-be-bom"])
def test_any_encoding_with_a_bom_and_no_declaration(encoding):
    text = dump(*PAGES)
    if encoding.endswith("-bom"):
        content = ("\ufeff" + text).encode(encoding.removesuffix("-bom"))
    else:
        content = text.encode(encoding)
    assert read(content)[0] == ARTICLES


def test_a_declared_encoding():
    content = '<?xml version="1.0" encoding="windows-1251"?>' + dump(page("Шест", "шест"))
    assert read(content.encode("windows-1251"))[0] == [("Шест", "шест")]


def test_old_dumps_without_ns_and_redirect():
    pages = [page("One", "text", None), page("Talk:One", "chat", None), page("A: b", "t", None)]
    found, reader = read(dump(*pages, page("R", " #redirect [[One]]", None)).encode())
    assert [title for title, _ in found] == ["One", "A: b"] and (reader.redirects, reader.other_pages) == (1, 1)


def test_of_several_revisions_the_last_counts():
    twice = page("One", "old").replace("</revision>", "</revision><revision><text>new</text></revision>", 1)
    assert read(dump(twice).encode())[0] == [("One", "new")]
    assert read(dump(page("One", "")).encode())[0] == [("One", "")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_reading_from_any_article_on(encoding):
    content = dump(*PAGES).encode(encoding)
    whole = Dump("whole")
    articles = list(whole.articles([content]))
    assert articles[-1].passed == (2, 1)
    for at, article in enumerate(articles):
        rest = Dump("rest")
        pieces = [content[i : i + 50] for i in range(0, len(content), 50)]
        found = list(rest.articles_from(pieces, whole.header, article.place))
        assert [(a.title, a.text, a.place) for a in found] == [(a.title, a.text, a.place) for a in articles[at + 1 :]]
        assert rest.namespaces == whole.namespaces and rest.header == whole.header


def test_a_dump_that_is_cut_is_refused_unless_it_may_be():
    content = dump(*PAGES).encode()[:-200]
    with pytest.raises(DataError, match="ends in the middle"):
        read(content)
    assert read(content, may_be_cut=True)[0] == ARTICLES[:2]


@pytest.mark.parametrize(
    "content",
    [
        '<!DOCTYPE mediawiki [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><mediawiki>&b;</mediawiki>',
        '<!DOCTYPE mediawiki SYSTEM "file:///etc/passwd"><mediawiki></mediawiki>',
        "<!DOCTYPE mediawiki><mediawiki></mediawiki>",
    ],
)
def test_document_types_are_refused(content):
    with pytest.raises(DataError, match="document type"):
        read(content.encode())


def test_what_is_no_dump():
    with pytest.raises(RequestError, match="begins with <html>"):
        read(b"<html></html>")
    for content in (b"plain text", b"\xff\xfe\x00", HEADER.encode() + b"<page><title>&nbsp;", b"<mediawiki></x>"):
        with pytest.raises(DataError):
            read(content)


@pytest.mark.parametrize(
    "content",
    [
        '<?xml version="1.0" encoding="shift_jis"?>' + dump(*PAGES),
        '<?xml version="1.0" encoding="foo-8"?>' + dump(*PAGES),
        '<?xml version="1.0" encoding="rot13"?>' + dump(*PAGES),
        '<?xml version="1.0" encoding="hex"?>' + dump(*PAGES),
        dump(*PAGES).replace('key="1"', 'key="abc"'),
    ],
)
def test_odd_encodings_and_namespaces_are_damage(content):
    with pytest.raises(DataError, match="the dump is not well-formed XML"):
        read(content.encode())


def test_a_page_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(dumps, "MOST_CHARACTERS", 1_000)
    with pytest.raises(DataError, match="more than 1,000 characters"):
        read(dump(page("One", "x" * 1_001)).encode())

"""MediaWiki markup as the text that a reader sees, by our own rules, each of them linear in the length of the page.

Dropped: comments, templates, tables, references, formulas, galleries, files, categories, links to other languages,
tags (not what is between them), headings of sections in which nothing is left. Kept: the words of links, headings as
`== Heading ==`, list items without their marks, what stands in `<nowiki>` as it is. Entities become characters.
What opens and is never closed is text. docs/corpora.md compares this with mwparserfromhell.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Mapping

WITH_CONTENT = (
    "ref|references|math|chem|ce|gallery|timeline|imagemap|score|hiero|graph|mapframe|maplink|templatestyles|"
    "indicator|inputbox|categorytree|section|templatedata|style|script|includeonly"
)
"""Tags that go with what is between them: no sentence stands there."""
FILES, CATEGORIES, MEDIA = 6, 14, -2
"""Namespaces whose links are no text."""
DEEPEST_LINK = 8
"""Links nest only in the captions of files."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CONTENT_TAG = re.compile(rf"<(/?)({WITH_CONTENT})(?=[\s/>])([^<>]*)>", re.IGNORECASE)
_BRACES = re.compile(
    r"(?P<open>\{\{)|(?P<close>\}\})|^[ \t:*#]*(?P<begin>\{\|)|^[ \t:]*(?P<end>\|\})(?!\})", re.MULTILINE
)
_ARGUMENT = re.compile(r"\{\{\{[^{}]*\}\}\}")
_LINK_MARK = re.compile(r"\[\[|\]\]")
_OUTSIDE = re.compile(
    r"\[(?:(?:https?:|ftps?:|irc:|)//|mailto:|news:)[^\s\]\[<>]*+[ \t]*+([^\]\[\n]*+)\]", re.IGNORECASE
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*|simple")
_FILE_OPTION = re.compile(r"\|(?:thumb|thumbnail|frame|frameless|\d+px)(?:\||\Z)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BREAK = re.compile(r"</?(?:br|hr|p|div|li|tr)\b[^<>]*>", re.IGNORECASE)
_EMPTY = re.compile(r"(?<=\s)\([ \t,;:]*+\)[ \t]?")
_LEFT_OVER = re.compile(r"\((?:[ \t]*[,;])++[ \t]*")
_QUOTES = re.compile(r"'{2,5}")
_SWITCH = re.compile(r"__[A-Z]+__")
_HEADING = re.compile(r"(={1,6})[ \t]*(\S.*?)[ \t]*\1[ \t]*$")
_ITEM = re.compile(r"[*#:;]+[ \t]*")
_SPACES = re.compile(r"[ \t\u00a0]{2,}|\u00a0")
_LITERAL = re.compile("\ue000(\\d+)\ue001")


def words_of_namespaces(namespaces: Mapping[int, Collection[str]]) -> frozenset[str]:
    """The names, in lower case, of namespaces whose links are no text: the dump's own and the English ones."""
    own = {name for key in (FILES, CATEGORIES, MEDIA) for name in namespaces.get(key, ())}
    return frozenset(name.lower() for name in {*own, "File", "Image", "Category", "Media"})


def render(markup: str, dropped: Collection[str] = words_of_namespaces({})) -> str:
    """The text of a page; `dropped` are the namespaces whose links go."""
    literals: list[str] = []
    text = _take_literals(_COMMENT.sub("", markup), literals)
    text = _without(text, _content_ranges(text))
    text = _ARGUMENT.sub("", text)
    text = _without(text, _brace_ranges(text))
    text = _links(text, dropped)
    text = _OUTSIDE.sub(r"\1", text)
    text = _TAG.sub("", _BREAK.sub("\n", text))
    text = _SWITCH.sub("", _QUOTES.sub("", text))
    text = _LEFT_OVER.sub("(", _EMPTY.sub("", html.unescape(text)))
    text = "\n".join(_lines(text)).rstrip("\n")
    return _LITERAL.sub(lambda found: literals[int(found[1])], text) if literals else text


def _take_literals(text: str, literals: list[str]) -> str:
    """Put marks in the place of what `<nowiki>` protects; a page that has such marks of its own loses them."""
    if "<nowiki>" not in text:
        return text
    pieces, place = [], 0
    text = text.replace("\ue000", "").replace("\ue001", "")
    while (begin := text.find("<nowiki>", place)) >= 0 and (end := text.find("</nowiki>", begin)) >= 0:
        pieces += [text[place:begin], f"\ue000{len(literals)}\ue001"]
        literals.append(html.unescape(text[begin + len("<nowiki>") : end]))
        place = end + len("</nowiki>")
    return "".join([*pieces, text[place:]])


def _without(text: str, ranges: list[tuple[int, int]]) -> str:
    """The text without these ranges, which do not overlap and come in order."""
    pieces, place = [], 0
    for begin, end in ranges:
        pieces.append(text[place:begin])
        place = end
    return "".join([*pieces, text[place:]])


def _content_ranges(text: str) -> list[tuple[int, int]]:
    """Where tags that go with their content begin and end."""
    ranges: list[tuple[int, int]] = []
    inside, begin = "", 0
    for tag in _CONTENT_TAG.finditer(text):
        name = tag[2].lower()
        if tag[1]:
            if name == inside:
                ranges.append((begin, tag.end()))
                inside = ""
        elif tag[3].endswith("/"):
            if not inside:
                ranges.append(tag.span())
        elif not inside or name == inside:  # one that opens twice was not closed
            inside, begin = name, tag.start()
    return ranges


def _brace_ranges(text: str) -> list[tuple[int, int]]:
    """Where templates and tables that are not inside another begin and end."""
    opened: list[tuple[str, int]] = []
    depth = {"open": 0, "begin": 0}
    ranges: list[tuple[int, int]] = []
    for mark in _BRACES.finditer(text):
        kind = mark.lastgroup or ""
        if kind in depth:
            opened.append((kind, mark.start(kind)))
            depth[kind] += 1
            continue
        wanted, found = "open" if kind == "close" else "begin", ""
        if not depth[wanted]:
            continue
        while found != wanted:  # what was opened inside and not closed ends with it
            found, begin = opened.pop()
            depth[found] -= 1
        while ranges and ranges[-1][0] >= begin:
            ranges.pop()
        ranges.append((begin, mark.end()))
    return ranges


def _links(text: str, dropped: Collection[str]) -> str:
    """Every link as its words."""
    opened: list[list[str]] = [[]]
    place = 0
    for mark in _LINK_MARK.finditer(text):
        opened[-1].append(text[place : mark.start()])
        place = mark.end()
        if mark[0] == "[[" and len(opened) <= DEEPEST_LINK:
            opened.append([])
        elif mark[0] == "]]" and len(opened) > 1:
            inside = "".join(opened.pop())
            opened[-1].append(_words_of_link(inside, dropped))
        else:
            opened[-1].append(mark[0])
    opened[-1].append(text[place:])
    return "[[".join("".join(pieces) for pieces in opened)


def _words_of_link(inside: str, dropped: Collection[str]) -> str:
    target, pipe, words = inside.partition("|")
    prefix, colon, rest = target.partition(":")
    if colon:
        space = prefix.strip().lower().replace("_", " ")
        if space in dropped or _FILE_OPTION.search(inside) or (not pipe and _LANGUAGE.fullmatch(prefix.strip())):
            return ""
        if not prefix.strip():  # [[:Category:X]] is a link that is read
            target = rest
    if "\n" in target:  # no page is called that
        return f"[[{inside}]]"
    return words or target.strip()


def _lines(text: str) -> Iterator[str]:
    """Lines without the marks of lists, no two empty ones together, headings only before something."""
    waiting: list[tuple[int, str]] = []
    empty = True
    for line in text.split("\n"):
        line = _SPACES.sub(" ", line).strip()
        if heading := _HEADING.fullmatch(line):
            level = len(heading[1])
            waiting = [w for w in waiting if w[0] < level] + [(level, f"{heading[1]} {heading[2]} {heading[1]}")]
            continue
        line = _ITEM.sub("", line, count=1) if line[:1] in "*#:;" else line
        if not line:
            if not empty and not waiting:
                yield ""
                empty = True
            continue
        for _, words in waiting:
            yield from ([] if empty else [""])
            yield words
            yield ""
            empty = True
        waiting = []
        yield line
        empty = False

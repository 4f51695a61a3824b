"""One self-contained HTML page: no network, light and dark, readable on a phone, fit to print."""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, a sentence that says what is seen, and the thing itself."""

    title: str
    about: str
    body: str
    of: str = ""
    """Whose it is, where a page has the same section of several."""


def page(title: str, sections: Iterable[Section], data: dict[str, Any] | None = None, *, wide: bool = False) -> str:
    """The whole page; `data` is what its script works with; `wide`: for tables of many columns."""
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    script = (ASSETS / "page.js").read_text(encoding="utf-8")
    sections = list(sections)
    several = any(s.of for s in sections)
    parts = "\n".join(
        f"<section{f' id=part{number}' if several else ''}>"
        f"<h2>{escape(f'{s.title} · {s.of}' if s.of else s.title)}</h2>"
        f"{f'<p class=about>{s.about}</p>' if s.about else ''}\n{s.body}</section>"
        for number, s in enumerate(sections)
    )
    if several:
        parts = f"{_contents(sections)}\n{parts}"
    # "</script>" inside a string would end the element, and "<!--<script>" would keep it from ending.
    compact = json.dumps(data or {}, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    payload = compact.replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n"
        f"<body>\n<main{' class=wide' if wide else ''}>\n<h1>{escape(title)}</h1>\n{parts}\n</main>\n"
        f'<script type="application/json" id="data">{payload}</script>\n<script>\n{script}</script>\n</body></html>\n'
    )


def _contents(sections: Sequence[Section]) -> str:
    """Links to all parts: a line for what is of all, and one for each that has parts of its own."""
    lines: dict[str, list[str]] = {}
    for number, section in enumerate(sections):
        lines.setdefault(section.of, []).append(f'<a href="#part{number}">{escape(section.title)}</a>')
    items = (f"<li>{escape(of) + ': ' if of else ''}{', '.join(links)}</li>" for of, links in lines.items())
    return f'<nav aria-label="contents"><ul>{"".join(items)}</ul></nav>'


def escape(text: str) -> str:
    """Text for HTML."""
    return html.escape(text, quote=True)


def table(
    rows: Iterable[Sequence[str]], columns: Sequence[str] = (), numbers: Collection[int] = (), *, cards: bool = False
) -> str:
    """A table that scrolls by itself; without column names the first cell of a row is its name.

    With `cards` a row becomes a list of names and values where the page is narrow: for many columns.
    """

    def cell(tag: str, place: int, text: str) -> str:
        name = f' data-name="{escape(columns[place])}"' if cards and tag == "td" else ""
        return f"<{tag}{' class=number' if place in numbers else ''}{name}>{escape(text)}</{tag}>"

    head = "".join(cell("th", i, name) for i, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(cell("td" if i or columns else "th", i, text) for i, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    heading, kind = f"<tr>{head}</tr>" if head else "", " class=cards" if cards else ""
    return f'<div class="scroll"><table{kind}>{heading}{body}</table></div>'

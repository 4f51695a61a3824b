"""`make bench-dump`: how fast a MediaWiki dump becomes a corpus, on one core; writes docs/results/dump.md.

A synthetic dump is made from a seed in a temporary folder: pages with templates, references, links, tables and
headings, words drawn by a Zipf law, every tenth page a redirect or of another namespace. Every build runs in a process
of its own, held to one core; its time includes unpacking, hashing and writing.
"""

from __future__ import annotations

import bz2
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "dump.md"
MEGABYTES, SMALL = 210, 21
WANTED = 5
"""Megabytes of uncompressed XML a second, markup kept."""
HEADER = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n<siteinfo>'
    '<namespaces><namespace key="0" /><namespace key="1">Talk</namespace></namespaces></siteinfo>\n'
)
REDIRECT = '<redirect title="Title 1" />'
BUILD = """
import resource, sys, time
from pathlib import Path
from headcount.text import wikipedia
began = time.perf_counter()
wikipedia.build(Path(sys.argv[1]), sys.argv[2])
print(time.perf_counter() - began, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def pages(size: int, seed: int = 0) -> Iterator[bytes]:
    """A dump of at least `size` bytes."""
    draw = np.random.default_rng(seed)
    letters = list("etaoinshrdlucmfwygpbvk")
    vocabulary = ["".join(draw.choice(letters, draw.integers(2, 10))) for _ in range(20_000)]
    yield HEADER.encode()
    made, number = len(HEADER), 0
    while made < size:
        number += 1
        kind = number % 20
        text = "#REDIRECT [[Title 1]]" if kind == 0 else _article(draw, vocabulary)
        title = f"{'Talk:' if kind == 1 else ''}Title {number}"
        content = (
            f"<page><title>{title}</title><ns>{int(kind == 1)}</ns><id>{number}</id>"
            f"{REDIRECT if kind == 0 else ''}<revision><id>{number}</id><timestamp>"
            f"2026-11-18T00:00:00Z</timestamp><contributor><username>Somebody</username></contributor>"
            f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        ).encode()
        made += len(content)
        yield content
    yield b"</mediawiki>\n"


def _article(draw: np.random.Generator, vocabulary: list[str]) -> str:
    """About 9 KB of markup."""
    chosen = np.minimum(draw.zipf(1.2, 1_300), len(vocabulary)) - 1
    words = [vocabulary[i] for i in chosen.tolist()]
    pieces = [f"{{{{Infobox\n| name = {words[0]}\n| kind = {{{{nested|{words[1]}}}}}\n}}}}\n'''{words[2]}''' is "]
    for place in range(0, len(words) - 20, 20):
        a, b, c, d, *rest = words[place : place + 20]
        pieces.append(f"{' '.join(rest[:8])} [[{a}|{b}]], [[{c}]] &ndash; {' '.join(rest[8:])}")
        pieces.append(f"<ref>{{{{cite book|title={a} {b}|year=2026}}}}</ref>. " if place % 100 == 0 else ". ")
        if place % 260 == 0:
            pieces.append(f"\n\n== {d} ==\n")
    pieces.append(
        f"\n{{| class=wikitable\n|-\n| {words[5]} || {words[6]}\n|}}\n* {words[7]}\n[[Category:{words[8]}]]\n"
    )
    return "".join(pieces)


def build(dump: Path, form: str) -> tuple[float, float, float]:
    """Seconds, seconds of a processor, and peak memory in MiB of one build in a process of its own on one core."""
    with tempfile.TemporaryDirectory(dir=dump.parent) as cache:
        done = subprocess.run(
            [sys.executable, "-c", BUILD, str(dump), form],
            env={**os.environ, "HEADCOUNT_CACHE": cache},
            capture_output=True,
            check=True,
            text=True,
        )
    seconds, busy, kilobytes = map(float, done.stdout.split())
    return seconds, busy, kilobytes / 1024


def main() -> None:
    """Make the dumps, build from them, write the table."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the builds inherit it
    rows, load = [], os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        small, plain, packed = (Path(name) / file for file in ("small.xml", "dump.xml", "dump.xml.bz2"))
        small.write_bytes(b"".join(pages(SMALL * 10**6)))
        with plain.open("wb") as file, bz2.open(packed, "wb") as squeezed:
            for content in pages(MEGABYTES * 10**6):
                file.write(content)
                squeezed.write(content)
        size = plain.stat().st_size / 1e6
        for dump, form, about in (
            (packed, "markup", "markup kept, from .bz2"),
            (packed, "text", "rendered, from .bz2"),
            (plain, "markup", "markup kept, from plain XML"),
            (plain, "text", "rendered, from plain XML"),
            (small, "text", f"rendered, from {SMALL} MB of plain XML"),
        ):
            seconds, busy, memory = build(dump, form)
            read = dump.stat().st_size / 1e6 if dump == small else size
            rows.append((about, read / seconds, read / busy, memory))
            print(f"{about}: {read / seconds:.1f} MB/s, {read / busy:.1f} by processor, {memory:.0f} MiB", flush=True)
        ratio = packed.stat().st_size / 1e6
    table = "".join(f"| {row[0]} | {row[1]:.1f} | {row[2]:.1f} | {row[3]:.0f} |\n" for row in rows)
    RESULTS.write_text(
        "# From a dump to a corpus\n\n"
        f"Written by `make bench-dump` on {date.today()}: Python {platform.python_version()}, {platform.system()}, one "
        f"core; load average {load:.2f} before and {os.getloadavg()[0]:.2f} after.\n"
        f"A synthetic dump of {size:.0f} MB of XML ({ratio:.0f} MB as .bz2), made from a seed; the time includes "
        f"unpacking,\nhashing, counting and writing. Wanted: ≥ {WANTED} MB/s with markup kept.\n\n"
        "| what | MB of uncompressed XML a second | the same by processor time | peak memory, MiB |\n"
        f"|---|---|---|---|\n{table}"
    )
    sys.exit(rows[0][1] < WANTED)


if __name__ == "__main__":
    main()

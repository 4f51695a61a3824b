"""The page on memory: it is of the size that was asked for, and keeps what it promises."""

import re

from benchmarks.memory import KINDS, LARGE, LIMIT, RESULTS, SMALL


def test_the_page_is_of_the_large_text():
    """A run with --megabytes is for trying things out: its page may not stand for the real one."""
    page = RESULTS.read_text(encoding="utf-8")
    assert re.search(r"text of ([\d,]+) MB and on one of (\d+) MB", page).groups() == (f"{LARGE:,}", f"{SMALL}")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    assert [row[0] for row in rows] == ["tokens", "---", *KINDS]
    assert rows[0][2] == f"{LARGE:,} MB" and rows[0][-1] == f"seconds of the {LARGE:,} MB"
    assert all(float(row[7].strip("*")) < LIMIT for row in rows[2:])

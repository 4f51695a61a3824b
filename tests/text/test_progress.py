"""Progress: a bar for a person, a line now and then for a log."""

import sys
from types import SimpleNamespace

from headcount.text import progress


def test_what_is_quick_is_silent_in_a_log_and_what_is_slow_is_not(capsys, monkeypatch):
    with progress.shown("reading", 5_000_000) as show:
        show(1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    for total, line in ((5_000_000, "reading: 2 of 5 MB\n"), (None, "reading: 2 MB\n")):
        with progress.shown("reading", total) as show:
            show(2_000_000)
        assert capsys.readouterr().err == line


def test_a_bar_on_a_terminal(monkeypatch):
    written = []
    terminal = SimpleNamespace(isatty=lambda: True, write=written.append, flush=lambda: None, encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown("reading", 100) as show:
        show(50)
    assert "reading" in "".join(written)


def test_nobody_reads(monkeypatch):
    def broken(*_):
        raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=broken, flush=broken))
    progress.say("a line")

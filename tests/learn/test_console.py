"""What a person watching a run sees: a bar on a terminal, a line for every event elsewhere."""

import io
import re

import pytest

from headcount.learn import console
from headcount.learn.console import ConsoleSink

EVALUATED = {
    "event": "evaluated",
    "step": 1_200,
    "bits_per_byte": 2.34567,
    "bytes": 1,
    "protocol": {"name": "carried"},
    "tokens": {"exact": True},
}
SAMPLED = {"event": "sampled", "step": 4, "text": "a\nb" + "c" * 100}


def step(number, **facts):
    own = {"event": "step", "step": number, "bits_per_byte": 3.0, "bytes": 1_000 * number, "seconds": 0.5 * number}
    return own | facts


@pytest.fixture
def watched(monkeypatch):
    """What a sink shows of some events, on a terminal or not."""

    def of(*events, terminal=False, steps=100, width=140):
        shown = io.StringIO()
        made = console.PatientConsole
        options = {"file": shown, "force_terminal": terminal, "width": width, "highlight": False}
        monkeypatch.setattr(console, "PatientConsole", lambda **_: made(**options))
        with ConsoleSink(steps) as sink:
            for event in events:
                sink(event)
            sink.progress.refresh()
        monkeypatch.setattr(console, "PatientConsole", made)
        return shown.getvalue()

    return of


def test_a_line_for_every_event_where_there_is_no_terminal(watched):
    shown = watched(
        step(1),
        {"event": "saved", "step": 4},
        SAMPLED,
        EVALUATED,
        {"event": "skipped", "step": 5, "in_row": 2},
        {"event": "save_failed", "at": 6, "why": "No space left on device"},
        {"event": "finished", "at": 2_000, "seconds": 65.4},
    ).splitlines()
    assert re.fullmatch(r"step 1/100 · 3.000 bits per byte · 2,000 bytes/s · [\d,]+ MB · 50 s left", shown[0])
    assert shown[1:] == [
        "step 4: saved",
        f"step 4: it writes {('a' + chr(10) + 'b' + 'c' * 57)!r}",
        "step 1,200: 2.3457 bits per byte on held-out text (carried, 1 byte)",
        "step 5 skipped: a loss or gradient is not finite (2 in a row)",
        "step 6: no checkpoint could be written: No space left on device; going on",
        "step 2,000: finished after 65 seconds of training",
    ]


def test_steps_come_as_lines_only_now_and_then(watched, monkeypatch):
    clock = iter([0.0, 1.0, 9.9, 10.1, 12.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    sink_lines = []
    sink = ConsoleSink(100)
    monkeypatch.setattr(sink, "say", sink_lines.append)
    for number in range(1, 6):
        sink(step(number))
    assert [line.split(" ·")[0] for line in sink_lines] == ["step 1/100", "step 4/100"]


def test_a_bar_on_a_terminal(watched):
    shown = watched(step(1), step(40), {"event": "saved", "step": 40}, SAMPLED, EVALUATED, terminal=True)
    last = shown.rpartition("step 40/100")[2]
    assert "━" in last and "3.000 bits per byte · 2,000 bytes/s" in last and " MB" in last
    assert "step 1,200: 2.3457 bits per byte on held-out text" in shown  # above the bar
    assert "saved" not in shown and "it writes" not in shown and "s left" not in shown
    assert "\x1b[2K" in shown  # it is wiped away at the end


def test_speed_and_bits_are_smoothed(watched):
    shown = watched(step(1), step(2, bits_per_byte=1.0, seconds=0.75), terminal=True)
    assert "2.900 bits per byte · 2,200 bytes/s" in shown


@pytest.mark.parametrize("terminal", [False, True])
def test_tokens_from_which_the_text_cannot_be_restored_say_so(watched, terminal):
    begun = {"event": "resumed", "at": 0, "exact": False}
    shown = watched(begun, step(1), EVALUATED | {"tokens": {"exact": False}}, terminal=terminal)
    assert "3.000 bits per byte, not lossless · " in shown
    assert "2.3457 bits per byte, not lossless on held-out text" in shown


def test_markup_in_what_is_written_is_text(watched):
    assert "it writes '[bold]x[/bold]'" in watched({"event": "sampled", "step": 4, "text": "[bold]x[/bold]"})


def test_bytes_that_are_no_text_are_escaped_once(watched):
    """They come escaped; what else cannot be seen in a line is escaped here."""
    sampled = {"event": "sampled", "step": 4, "text": " ico\\xd4er\n\t'\u200b"}
    assert "it writes ' ico\\xd4er\\n\\t'\\u200b'" in watched(sampled)
    assert f"it writes '{'a' * 58}'" in watched(sampled | {"text": "a" * 58 + "\\xd4"})  # not the half of one
    assert f"it writes '{'a' * 56}\\xd4'" in watched(sampled | {"text": "a" * 56 + "\\xd4bc"})


@pytest.mark.parametrize("seconds", [0.44, 65.4])
def test_a_short_training_took_some_time(watched, seconds):
    said = "0.4" if seconds < 10 else "65"
    assert f"finished after {said} seconds" in watched({"event": "finished", "at": 9, "seconds": seconds})


@pytest.mark.parametrize(
    ("width", "steps", "line"),
    [
        (40, 100, "3.000 bits per byte"),
        (40, 100_000, "3.000 bits"),
        (60, 100, "3.000 bits per byte · 2,000 bytes/s"),
        (24, 100, ""),
        (100, 100, "3.000 bits per byte · 2,000 bytes/s · "),
    ],
)
def test_on_a_narrow_terminal_the_step_and_the_time_stay(watched, width, steps, line):
    shown = watched(step(1), step(40), terminal=True, steps=steps, width=width)
    last = re.sub("\x1b[^mKAhl]*[mKAhl]", "", shown.rpartition("step 40/")[2]).splitlines()[0]
    assert "…" not in shown and last.startswith(f"{steps:,} ") and line in last
    assert re.search(r"[\d-]+:[\d-]+\s*$", last), last
    assert ("bytes/s" in last) == ("bytes/s" in line) and ("━" in last) == (width == 100)


def test_nobody_reading_is_no_reason_to_end():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    gone = console.PatientConsole(file=Gone())
    gone.print("x")
    assert gone.quiet

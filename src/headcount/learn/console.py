"""What a person watching a run sees: a live line on a terminal, plain lines into a file or a pipe."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from headcount.counted import counted, in_seconds
from headcount.learn.device import memory_in_use
from headcount.learn.events import Event
from headcount.measure.figure import BITS_PER_BYTE, unit_of

SECONDS_BETWEEN_LINES = 10.0
SHOWN = 60
"""Characters of a sample that stand in a line."""
WIDE = 70
"""Columns of a terminal from which on there is room for a bar."""
TIME_LEFT = 8
"""Columns of `10:00:00`."""


class PatientConsole(Console):
    """Rich ends the program when nobody reads what it prints; a training goes on."""

    def on_broken_pipe(self) -> None:
        """Say nothing more."""
        self.quiet = True


class ConsoleSink:
    """Step, bits per byte, bytes per second, time left, memory."""

    def __init__(self, steps: int) -> None:
        self.console = PatientConsole(stderr=True, highlight=False)
        self.steps = steps
        self.progress = Progress(
            TextColumn("step {task.completed:,.0f}/{task.total:,.0f}"),
            *([BarColumn(bar_width=None)] if self.console.width >= WIDE else []),
            TextColumn("{task.fields[line]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task("train", total=steps, line="")
        self.unit = BITS_PER_BYTE
        self.smooth: float | None = None
        self.last_step = (0.0, 0)
        self.speed = 0.0
        self.next_line = 0.0

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        kind = event["event"]
        if kind in ("started", "resumed"):
            self.unit = unit_of(event["exact"])
        elif kind == "step":
            self._step(event)
        elif kind == "evaluated":
            unit = unit_of(event["tokens"]["exact"])
            self.say(
                f"step {event['step']:,}: {event['bits_per_byte']:.4f} {unit} on held-out text "
                f"({event['protocol']['name']}, {counted(event['bytes'], 'byte')})"
            )
        elif kind == "skipped":
            self.say(f"step {event['step']:,} skipped: a loss or gradient is not finite ({event['in_row']} in a row)")
        elif kind in ("saved", "sampled", "finished") and not self.console.is_terminal:
            self.say(_plain(event))
        elif kind == "save_failed":
            self.say(f"step {event['at']:,}: no checkpoint could be written: {event['why']}; going on")

    def say(self, line: str) -> None:
        """A line above the live one."""
        self.console.print(line, markup=False, soft_wrap=True)

    def _step(self, event: Event) -> None:
        bits, now = event["bits_per_byte"], time.monotonic()
        self.smooth = bits if self.smooth is None else 0.95 * self.smooth + 0.05 * bits
        seconds, read = event["seconds"] - self.last_step[0], event["bytes"] - self.last_step[1]
        if seconds > 0:
            self.speed = 0.9 * self.speed + 0.1 * read / seconds if self.speed else read / seconds
        self.last_step = event["seconds"], event["bytes"]
        told = (
            f"{self.smooth:.3f} {self.unit}",
            f"{self.speed:,.0f} bytes/s",
            f"{memory_in_use() / 1e6:,.0f} MB",
        )
        done = event["step"]
        step = f"step {done:,}/{self.steps:,}"
        self.progress.update(self.task, completed=done, line=self._fitting(step, told))
        if not self.console.is_terminal and now >= self.next_line:
            self.next_line = now + SECONDS_BETWEEN_LINES
            left = event["seconds"] / done * (self.steps - done)
            self.say(" · ".join((step, *told, f"{left:,.0f} s left")))

    def _fitting(self, step: str, told: Sequence[str]) -> str:
        """As much of what is told, in this order, as leaves room for the step and the time left, which matter more."""
        room = self.console.width - len(step) - TIME_LEFT - 2
        shorter = [" · ".join(told[:count]) for count in range(len(told), 0, -1)]
        return next((said for said in (*shorter, f"{self.smooth:.3f} bits") if len(said) <= room), "")


def _plain(event: Event) -> str:
    """A line for a log: what a person at a terminal sees by other means."""
    if event["event"] == "saved":
        return f"step {event['step']:,}: saved"
    if event["event"] == "sampled":
        return f"step {event['step']:,}: it writes '{_in_a_line(event['text'])}'"
    return f"step {event['at']:,}: finished after {in_seconds(event['seconds'])} seconds of training"


def _in_a_line(text: str) -> str:
    r"""The beginning of a sample: what cannot be seen is escaped; bytes that are no text come as \xd4 already."""
    shown = text[:SHOWN]
    if len(text) > SHOWN:  # not the half of an escape
        shown = re.sub(r"\\(x[0-9a-f]?)?$", "", shown)
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in shown)

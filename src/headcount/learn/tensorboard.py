"""TensorBoard's event files, for those who have it installed: `metrics.jsonl` stays the truth."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headcount.learn.events import Event, Sink

Say = Callable[[str], None]


def sink_for(folder: Path, done: int, say: Say) -> Sink | None:
    """A sink that writes event files into `folder`; None where the package is not installed, or is broken.

    What an interrupted process wrote beyond step `done` is hidden: those steps come again.
    """
    if importlib.util.find_spec("tensorboard") is None:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter  # torch's own, and it needs the package

        return TensorBoardSink(SummaryWriter(str(folder), flush_secs=10, purge_step=done + 1), say)
    except Exception as error:  # an optional extra, broken in ways of its own, must not keep a run from beginning
        say(f"no event files for TensorBoard: {type(error).__name__}: {error}")
        return None


class TensorBoardSink:
    """Training and validation bits per byte, rate and gradient norm, and what was written."""

    def __init__(self, writer: Any, say: Say) -> None:
        self.writer, self.say, self.failed = writer, say, False

    def __call__(self, event: Event) -> None:
        """Write one event; a disk that does not take it ends the event files, not the run."""
        if self.failed:
            return
        try:
            self._write(event)
        except OSError as error:
            self.failed = True
            self.say(f"no more event files for TensorBoard: {error.strerror or error}")

    def _write(self, event: Event) -> None:
        kind = event["event"]
        if kind == "step":
            for name in ("bits_per_byte", "lr", "gradient_norm"):
                self.writer.add_scalar(f"training/{name}", event[name], event["step"])
            for name, nats in event.get("losses", {}).items():
                self.writer.add_scalar(f"losses/{name}", nats, event["step"])
        elif kind == "evaluated":
            self.writer.add_scalar("validation/bits_per_byte", event["bits_per_byte"], event["step"])
        elif kind == "sampled":
            self.writer.add_text("sample", event["text"], event["step"])
        elif kind in ("finished", "stopped"):
            self.writer.flush()

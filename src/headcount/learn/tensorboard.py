"""TensorBoard's event files, for those who have it installed: `metrics.jsonl` stays the truth."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from headcount.learn.events import Event, Sink


def sink_for(folder: Path) -> Sink | None:
    """A sink that writes event files into `folder`; None where the package is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter  # torch's own, and it needs the package

    return TensorBoardSink(SummaryWriter(str(folder), flush_secs=10))


class TensorBoardSink:
    """Training and validation bits per byte, rate and gradient norm, and what was written."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def __call__(self, event: Event) -> None:
        """Write one event."""
        kind = event["event"]
        if kind == "step":
            for name in ("bits_per_byte", "lr", "gradient_norm"):
                self.writer.add_scalar(f"training/{name}", event[name], event["step"])
        elif kind == "evaluated":
            self.writer.add_scalar("validation/bits_per_byte", event["bits_per_byte"], event["step"])
        elif kind == "sampled":
            self.writer.add_text("sample", event["text"], event["step"])
        elif kind in ("finished", "stopped"):
            self.writer.flush()

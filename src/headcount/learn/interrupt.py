"""Signals while a run is under way: the first one asks for a stop at the next boundary, the second stops at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from headcount.errors import Interrupted


class Interruption:
    """Catches SIGINT and SIGTERM inside a `with` block; outside the main thread it does nothing."""

    def __init__(self, says: bytes = b"\nstopping after this step; once more stops at once\n") -> None:
        self.says = says
        """Written to standard error by the handler."""
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            if os.isatty(2):
                _say(b"\x1b[?25h")  # the live line had hidden the cursor
            os._exit(128 + number)  # the checkpoints on the disk are whole whenever this happens
        self.signal = number
        _say(self.says)

    def check(self) -> None:
        """Raise if a signal came."""
        if self.signal is not None:
            raise Interrupted(self.signal)


def _say(words: bytes) -> None:
    """Safe inside a handler; whoever read standard error may have got the same signal and be gone."""
    with contextlib.suppress(OSError):
        os.write(2, words)

"""What happens in a run, one event a line, and who listens.

`metrics.jsonl` is the truth: steps increase strictly for each kind of event, so that the lines with a `step` are the
same however often a run was interrupted. What belongs to a process (started, resumed, stopped …) carries `at` instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from headcount import durable

Event = Mapping[str, Any]
Sink = Callable[[Event], None]
WRITTEN_AGAIN = ("saved", "evaluated", "sampled")
"""On resume what was due at the checkpoint's own step is done again, and so are these lines."""
Kinds = Mapping[str, type | tuple[type, ...]]
"""What must be there, and of what kind."""
NUMBER = (int, float)
NEEDED: Mapping[str, Kinds] = {
    "step": {"step": int, "bytes": int, "seconds": NUMBER, "bits_per_byte": NUMBER},
    "evaluated": {"step": int, "bits_per_byte": NUMBER, "protocol": dict},
    "sampled": {"step": int, "text": str},
    "skipped": {"step": int},
    "saved": {"step": int},
    "finished": {"at": int, "seconds": NUMBER},
    "rescheduled": {"at": int, "steps": int},
}
"""What readers rely on; a line of such a kind that lacks it is damaged."""


class MetricsLog:
    """The lines of `metrics.jsonl`. A disk that is full delays them; it never tears or loses them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending = b""
        _mend(path)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self._pending += json.dumps(event, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        self.flush()

    def flush(self, *, to_disk: bool = False) -> bool:
        """Write what is pending; False if the disk does not take it now."""
        try:
            with self.path.open("ab", buffering=0) as file:  # a buffer would be written once more when it is closed
                whole = file.tell()
                try:
                    if file.write(self._pending) < len(self._pending):
                        raise OSError("the disk took only a part")
                    if to_disk:
                        os.fsync(file.fileno())
                except OSError:
                    os.truncate(self.path, whole)
                    raise
        except OSError:
            return False
        self._pending = b""
        return True


def _mend(path: Path) -> None:
    """Cut a torn last line off, or the next one would be written behind it and lost with it."""
    content = path.read_bytes() if path.exists() else b""
    if not content.endswith(b"\n") and content:
        os.truncate(path, content.rfind(b"\n") + 1)


class Lines(NamedTuple):
    """What a file of JSON lines holds."""

    whole: list[dict[str, Any]]
    damaged: int
    """Lines that are something else; a last one without its end is only torn, and does not count."""


def read(path: Path) -> list[dict[str, Any]]:
    """All events of a log; a torn last line is left out, and so is whatever else is no event."""
    return lines(path, is_event).whole


def is_event(line: Mapping[str, Any]) -> bool:
    """Whether a line has what its kind of event has."""
    name = line.get("event")
    return isinstance(name, str) and holds(line, NEEDED.get(name, {}))


def holds(table: Mapping[str, Any], kinds: Kinds) -> bool:
    """Whether all of it is there, and is what it should be."""
    return all(key in table and isinstance(table[key], kind) for key, kind in kinds.items())


def lines(path: Path, whole: Callable[[dict[str, Any]], bool]) -> Lines:
    """The lines of a file that are JSON objects and what they should be, and how many are not."""
    content = path.read_bytes() if path.exists() else b""
    found, ended = [], content[: content.rfind(b"\n") + 1].splitlines()
    for line in ended:
        try:
            parsed = json.loads(line, parse_constant=_refuse)
        except ValueError:
            continue
        if isinstance(parsed, dict) and whole(parsed):
            found.append(parsed)
    return Lines(found, len(ended) - len(found))


def _refuse(constant: str) -> None:
    """NaN and infinities are no JSON, and nothing of ours writes them."""
    raise ValueError(constant)


def cut(path: Path, step: int) -> None:
    """Forget what came after the checkpoint of `step`, and what was due at it and will be done again."""
    if not path.exists():
        return
    kept = [
        event
        for event in read(path)
        if event.get("step", -1) < step or (event.get("step") == step and event["event"] not in WRITTEN_AGAIN)
    ]
    durable.write(path, (json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in kept))

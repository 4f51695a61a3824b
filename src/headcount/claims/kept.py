"""What a claim measured, kept beside its runs: asked for the same once more, nothing is measured again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headcount import durable


def kept(file: Path, asked: object, measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """What the file holds, if it is whole and the same was asked; else it is measured now, and kept.

    `asked` is all that the numbers depend on; its `repr` has to tell one from another.
    """
    key = hashlib.sha256(repr(asked).encode()).hexdigest()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["asked"] == key and found["sha256"] == _hash(found["measured"]):
            return dict(found["measured"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged: it can be measured
        pass
    measured = json.loads(json.dumps(measure()))
    file.parent.mkdir(parents=True, exist_ok=True)
    durable.write_json(file, {"asked": key, "sha256": _hash(measured), "measured": measured})
    return dict(measured)


def _hash(measured: Any) -> str:
    return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()

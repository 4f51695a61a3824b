"""What two runs have in common: their lines with a step, times apart, and the bytes of their checkpoints."""

import json
from pathlib import Path

TIMES = {"seconds"}


def lines(run: Path) -> list[dict]:
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in event.items() if k not in TIMES} for event in events if "step" in event]


def last_checkpoint(run: Path) -> dict[str, bytes]:
    newest = max(p for p in (run / "checkpoints").iterdir() if p.name.isdecimal())
    return {p.name: p.read_bytes() for p in newest.glob("*.safetensors")} | {"step": newest.name.encode()}


def assert_same(one: Path, other: Path) -> None:
    assert lines(one) == lines(other)
    assert last_checkpoint(one) == last_checkpoint(other)
    assert json.loads((one / "best.json").read_text()) == json.loads((other / "best.json").read_text())
    for run in (one, other):
        for kind in ("step", "saved", "evaluated"):
            steps = [line["step"] for line in lines(run) if line["event"] == kind]
            assert steps == sorted(set(steps)), kind


def leftovers(run: Path) -> list[Path]:
    return list(run.rglob(".tmp-*"))

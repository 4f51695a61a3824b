"""Going on: which checkpoint, whether it belongs to this recipe, and what is said if the bits may differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headcount.errors import DataError, RequestError
from headcount.learn import checkpoint
from headcount.learn.checkpoint import Checkpoint
from headcount.learn.device import Device
from headcount.learn.plan import Say
from headcount.learn.run import Run


def newest_good(run: Run, say: Say) -> tuple[Checkpoint | None, list[int]]:
    """The newest whole checkpoint, if there is one, and the steps of damaged ones after it, which are set aside."""
    damaged: list[int] = []
    reasons: list[str] = []
    for step in reversed(checkpoint.steps_in(run.checkpoints)):
        try:
            found = checkpoint.read(run.checkpoints, step)
        except DataError as error:
            damaged.append(step)
            reasons.append(str(error))
            continue
        for bad, reason in zip(damaged, reasons, strict=True):
            say(f"{reason}; falling back to step {step}")
            checkpoint.set_aside(run.checkpoints, bad)
        return found, damaged
    if damaged:
        raise DataError(f"no checkpoint of {run.path} is whole: {reasons[0]}")
    return None, []


def require_same(run: Run, saved: Checkpoint, device: Device, say: Say) -> None:
    """Refuse a recipe that is not the checkpoint's; say so if another machine may change the bits."""
    now, then = run.recipe.to_dict(), dict(saved.record["recipe"])
    changed = differences(now, then)
    rescheduled = [event["steps"] for event in run.events() if event["event"] == "rescheduled"]
    if rescheduled and now["train"]["steps"] == rescheduled[-1]:
        changed = [line for line in changed if not line.startswith("train.steps ")]
    if changed:
        raise RequestError(
            f"{run.recipe_file} is not the recipe that this run was trained with: {'; '.join(changed)}. "
            "Put it back, or begin a new run (a longer one: headcount resume --steps N)"
        )
    other = differences({"": device.fingerprint()}, {"": saved.record["fingerprint"]})
    if other:
        say(f"this machine is not the one that wrote the checkpoint, so bits may differ: {'; '.join(other)}")


def differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """The keys in which two records differ, with both values. Where a corpus lies does not count; its hash does."""
    found = []
    for table in sorted({*now, *then}):
        a, b = now.get(table), then.get(table)
        if not isinstance(a, dict) or not isinstance(b, dict):
            a, b = {"": a}, {"": b}
        for key in sorted({*a, *b}):
            name = f"{table}.{key}".strip(".")
            if name != "corpus.path" and a.get(key) != b.get(key):
                found.append(f"{name} was {json.dumps(b.get(key))}, is {json.dumps(a.get(key))}")
    return found


def is_finished(run: Run, saved: Checkpoint) -> bool:
    """All steps done, and the last one evaluated."""
    step = saved.record["step"]
    evaluated = any(event["event"] == "evaluated" and event["step"] == step for event in run.events())
    return bool(step >= (run.recipe.train.steps or 0)) and evaluated

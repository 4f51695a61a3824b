"""Processes that are killed, signalled or doubled (rows 1 – 4, 15 – 17, 27)."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from pathlib import Path

from headcount.learn import checkpoint, lock
from tests.faults import processes
from tests.faults.outcome import Outcome
from tests.faults.rivals import CHARACTER, XL
from tests.faults.runs import assert_same, last_checkpoint, leftovers

KINDS = {
    "one head": (None, []),
    "no head": (None, ["model.attention=[]"]),
    "every head, rule segment": (None, ["model.attention=[0, 1]", "model.window_rule=segment"]),
    "min-trust LAMB, drawn lengths": (
        None,
        ["optimiser.kind=min-trust-lamb", "batches.lengths=merity2019", "batches.segment=40"],
    ),
    "Transformer-XL": (XL, []),
    "character Transformer, windows, momentum": (CHARACTER, []),
}
"""A recipe other than the SHA-RNN's, and settings."""
STOPS = (1, 5, 6, 11, 12)
PARTS = {
    "weights": ("model", "blocks.0.boom.up.weight"),
    "first moment": ("optimiser", "blocks.0.boom.up.weight/exp_avg"),
    "second moment": ("optimiser", "blocks.0.boom.up.weight/exp_avg_sq"),
    "step of the optimiser": ("optimiser", "head.bias/step"),
    "LSTM output": ("state", "0.blocks.1.lstm.h"),
    "LSTM cell": ("state", "0.blocks.1.lstm.c"),
    "memory": ("state", "0.blocks.0.memory.rows"),
}


def sets(*settings: str) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def whole_run(folder: Path, recipe: Path, *settings: str) -> Path:
    """An uninterrupted run."""
    run = folder / "whole"
    code = processes.run(["train", recipe, "--run", run, *sets(*settings)], folder / "log")
    assert code == 0, processes.said(folder / "log")
    return run


def kills(folder: Path, recipe: Path, count: int) -> Outcome:
    """Rows 1 and 27: kill -9 at random moments; the run that comes out is the uninterrupted one, its log too."""
    settings = ("train.steps=160", "train.save_every=3", "train.evaluate_every=20")
    whole = whole_run(folder, recipe, *settings)
    train = ["train", recipe, *sets(*settings), "--run", folder / "killed"]
    run, draw, arguments, outcome = folder / "killed", random.Random(4), train, Outcome()
    while outcome.tried < count:
        size = _size(run)
        process = processes.start(arguments, folder / "log", ("slow", 0.004))
        while process.is_alive() and _size(run) == size:
            time.sleep(0.002)
        process.join(draw.uniform(0, 0.25))
        killed = process.is_alive()
        if killed:
            process.kill()
        processes.finish(process)
        if killed:
            with outcome.one(f"kill {outcome.tried}"):
                begun = (run / "recipe.toml").exists()
                assert begun or not (run / "metrics.jsonl").exists()
                for step in checkpoint.steps_in(run / "checkpoints") if begun else []:
                    checkpoint.read(run / "checkpoints", step)
        if process.exitcode == 0:  # it got through: is it the same run? Begin again.
            assert_same(run, whole)
            shutil.rmtree(run)
        arguments = ["resume", run] if (run / "recipe.toml").exists() else train
    with outcome.one("the run that comes out"):
        assert processes.run(arguments, folder / "log") == 0
        assert_same(run, whole)
        assert not leftovers(run)
    return outcome


def _size(run: Path) -> int:
    log = run / "metrics.jsonl"
    return log.stat().st_size if log.exists() else 0


def aimed_kills(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 2: kill -9 at every call to the file system inside a save: the old checkpoint or the new one, never none."""
    whole = whole_run(folder, recipe)
    outcome, save, point = Outcome(), 1, 1
    while outcome.tried < count:
        run = folder / f"aimed-{save}-{point}-{outcome.tried}"
        arguments = ["train", recipe, "--run", run]
        code = processes.run(arguments, folder / "log", ("die_in_save", save, point))
        if code == 0:  # this save has no such point
            save, point = save % 3 + 1, 1
        else:
            with outcome.one(f"save {save}, point {point}"):
                assert code == -9
                steps = checkpoint.steps_in(run / "checkpoints")
                assert save == 1 or steps, "no checkpoint is left"
                for step in steps:
                    checkpoint.read(run / "checkpoints", step)
                assert processes.run(["resume", run], folder / "log") == 0
                assert_same(run, whole)
                assert not leftovers(run)
            point += 1
        shutil.rmtree(run)
    return outcome


def exact_resumes(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 3: kinds of run × moments of the stop; losses, weights, moments and state agree to the bit."""
    outcome = Outcome()
    for kind, (text, settings) in KINDS.items():
        if text is not None:
            recipe = recipe.with_name("rival.toml")
            recipe.write_text(text.format(text=recipe.with_name("my.txt")))
        whole = whole_run(folder, recipe, *settings)
        for stop in STOPS:
            if outcome.tried == count:
                break
            run = folder / "stopped"
            with outcome.one(f"{kind}, step {stop}"):
                arguments = ["train", recipe, "--run", run, *sets(*settings)]
                assert processes.run(arguments, folder / "log", ("die_after", stop)) == -9
                assert processes.run(["resume", run], folder / "log") == 0
                assert_same(run, whole)
            shutil.rmtree(run)
        shutil.rmtree(whole)
    return outcome


def rewrite(run: Path, step: int, change) -> None:
    """Write a checkpoint again, changed, with a manifest that is right."""
    saved = checkpoint.read(run / "checkpoints", step)
    parts = {name: dict(getattr(saved, name)) for name in ("model", "optimiser", "state", "record")}
    change(parts)
    shutil.rmtree(run / "checkpoints" / f"{step:08d}")
    checkpoint.publish(run / "checkpoints", step, checkpoint.Checkpoint(**parts))


def negative_controls(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 4: without any one part of a checkpoint the run that comes out differs, so the comparison can fail."""
    whole, outcome = whole_run(folder, recipe), Outcome()
    for part, (file, name) in list(PARTS.items())[:count]:
        run = folder / "without"
        assert processes.run(["train", recipe, "--run", run], folder / "log", ("die_after", 10)) == -9

        def forget(parts, file=file, name=name):
            assert parts[file][name].abs().sum() > 0
            parts[file][name] = parts[file][name].clone().zero_()

        with outcome.one(part):
            rewrite(run, 8, forget)
            assert processes.run(["resume", run], folder / "log") == 0
            assert last_checkpoint(run)["model.safetensors"] != last_checkpoint(whole)["model.safetensors"]
        shutil.rmtree(run)
    return outcome


def signals(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 15: Ctrl-C and SIGTERM, once and twice, before step 1, at a step, in a save, in an evaluation, at any time,
    and when the same Ctrl-C has ended whoever read standard error.
    """
    whole, outcome, draw = whole_run(folder, recipe), Outcome(), random.Random(0)
    places = ["begin", *(f"step {n}" for n in range(1, 12)), "save", "evaluate", "unheard 5", *["time"] * 4]
    while outcome.tried < count:
        number = draw.choice([signal.SIGINT, signal.SIGTERM])
        place, times = draw.choice(places), draw.choice([1, 1, 2])
        place = f"time {draw.uniform(0, 0.6):.3f}" if place == "time" else place
        run = folder / "signalled"
        with outcome.one(f"{number.name} × {times} at {place}"):
            arguments = ["train", recipe, "--run", run]
            code = processes.run(arguments, folder / "log", ("signal_at", number, place, times))
            too_late = code == 0 and place.startswith("time")
            too_early = code == -number and place.startswith("time")  # nothing was there yet that catches it
            assert code == 128 + number or too_late or too_early, f"exit code {code}"
            assert "Traceback" not in processes.said(folder / "log")
            again = ["resume", run] if (run / "recipe.toml").exists() else arguments
            assert processes.run(again, folder / "log") == 0, processes.said(folder / "log")
            assert_same(run, whole)
            assert not leftovers(run)
        shutil.rmtree(run, ignore_errors=True)
    return outcome


def double_starts(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 16: several processes begin the same run at once; exactly one wins and trains it to the end."""
    outcome = Outcome()
    for attempt in range(count):
        run = folder / f"run{attempt}"
        rivals = [
            processes.start(["train", recipe, "--run", run, "--steps", "3"], folder / f"log{i}") for i in range(3)
        ]
        codes = sorted(processes.finish(rival) for rival in rivals)
        with outcome.one(f"start {attempt}"):
            assert codes[0] == 0 and all(code in (2, 73) for code in codes[1:]), codes
            assert all("Traceback" not in processes.said(folder / f"log{i}") for i in range(3))
            assert last_checkpoint(run)["step"] == b"00000003"
        shutil.rmtree(run)
    return outcome


def stale_locks(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 17: locks left by a kill, by another boot, by a process number that was given away; all are taken over."""
    whole, outcome = whole_run(folder, recipe), Outcome()
    for attempt in range(count):
        run, kind = folder / "stale", ("kill", "another boot", "number given away")[attempt % 3]
        with outcome.one(kind):
            assert processes.run(["train", recipe, "--run", run], folder / "log", ("die_after", 7)) == -9
            record = run / ".holder.json"
            assert record.exists()
            if kind == "another boot":
                record.write_text(json.dumps({**lock._identity(1), "boot": "another"}))
            elif kind == "number given away":
                record.write_text(json.dumps({**lock._identity(1), "started": "1234567"}))
            assert processes.run(["resume", run], folder / "log") == 0, processes.said(folder / "log")
            assert_same(run, whole)
        shutil.rmtree(run)
    return outcome

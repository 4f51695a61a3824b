"""What a run survives (fault table, rows 5, 11, 15, 16, 17): full disks, non-finite numbers, signals, rivals."""

import json
import math
import os
import resource
import signal
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

import headcount as hc
from headcount.errors import BusyError, TrainingError
from headcount.learn import checkpoint, events, lock
from headcount.models.contract import Loss
from headcount.models.sha_rnn import ShaRnn
from tests.faults import processes
from tests.faults.runs import assert_same, leftovers, lines


def train(tiny_recipe, run, log, *more, fault=None) -> int:
    return processes.run(["train", tiny_recipe, "--run", run, *more], log, fault)


@pytest.fixture
def whole(tmp_path, tiny_recipe) -> Path:
    assert train(tiny_recipe, tmp_path / "whole", tmp_path / "log") == 0
    return tmp_path / "whole"


# Signals (row 15)


@pytest.mark.parametrize("place", ["begin", "step 1", "step 5", "save", "evaluate", "step 12"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_exits(tmp_path, tiny_recipe, whole, number, place):
    run, log = tmp_path / "stopped", tmp_path / "log"
    code = train(tiny_recipe, run, log, fault=("signal_at", number, place))
    if place == "begin":
        assert "before there was anything to save" in processes.said(log)
    if place == "step 12":  # the last step: there is nothing left to stop but the evaluation
        assert code in (0, 128 + number)
    else:
        assert code == 128 + number
        assert "headcount resume" in processes.said(log)
    assert "Traceback" not in processes.said(log)
    assert processes.run(["resume", run], log) == 0
    assert_same(run, whole)
    assert not leftovers(run)


def test_ctrl_c_that_also_ends_the_reader_of_what_is_said_saves_too(tmp_path, tiny_recipe, whole):
    run, log = tmp_path / "stopped", tmp_path / "log"
    assert train(tiny_recipe, run, log, fault=("signal_at", signal.SIGINT, "unheard 5")) == 130
    assert checkpoint.steps_in(run / "checkpoints")[-1] == 5
    assert processes.run(["resume", run], log) == 0
    assert_same(run, whole)


def test_a_second_signal_stops_at_once_and_loses_nothing(tmp_path, tiny_recipe, whole):
    run, log = tmp_path / "stopped", tmp_path / "log"
    assert train(tiny_recipe, run, log, fault=("signal_at", signal.SIGINT, "step 5", 2)) == 130
    assert checkpoint.steps_in(run / "checkpoints") == [4]
    assert processes.run(["resume", run], log) == 0
    assert_same(run, whole)


def test_a_signal_is_saved_at_its_own_step(tmp_path, tiny_recipe):
    run = tmp_path / "stopped"
    assert train(tiny_recipe, run, tmp_path / "log", fault=("signal_at", signal.SIGTERM, "step 5")) == 143
    assert checkpoint.steps_in(run / "checkpoints") == [4, 5]


def test_a_kill_after_the_last_evaluation_leaves_a_run_that_can_be_finished(tmp_path, tiny_recipe, whole):
    """Inside the last pruning: nothing is left to train, but there is something to sweep, and no figure yet."""
    run, log = tmp_path / "killed", tmp_path / "log"
    assert train(tiny_recipe, run, log, fault=("die_in_save", 3, 42)) == -9
    assert leftovers(run) and not (run / "figures.jsonl").exists()
    assert processes.run(["resume", run], log) == 0
    assert "is finished" in processes.said(log) and not leftovers(run)
    assert len(hc.Run(run).figures()) == 1
    assert_same(run, whole)


# A disk that is full (row 5)


def test_no_room_for_a_checkpoint(tmp_path, tiny_recipe, whole):
    run, log = tmp_path / "full", tmp_path / "log"
    size = (whole / "checkpoints" / "00000008" / "optimiser.safetensors").stat().st_size
    assert train(tiny_recipe, run, log, fault=("file_limit", size - 1_000)) == 4
    said = processes.said(log)
    assert "no checkpoint could be written" in said and "headcount resume" in said and "Traceback" not in said
    assert checkpoint.steps_in(run / "checkpoints") == [] and not leftovers(run)
    assert processes.run(["resume", run], log) == 0
    assert_same(run, whole)


def test_the_checkpoints_before_a_full_disk_stay(tmp_path, tiny_recipe, whole):
    """Saves fail from step 8 on: the run goes on, then stops; what was saved at step 4 is whole and is gone on from."""
    run, log = tmp_path / "full", tmp_path / "log"
    assert train(tiny_recipe, run, log, fault=("die_after", 5)) == -9
    size = (whole / "checkpoints" / "00000008" / "optimiser.safetensors").stat().st_size
    assert processes.run(["resume", run], log, ("file_limit", size - 1_000)) == 4
    checkpoint.read(run / "checkpoints", 4)
    assert checkpoint.steps_in(run / "checkpoints") == [4] and not leftovers(run)
    assert processes.run(["resume", run], log) == 0
    assert_same(run, whole)


def test_no_room_for_the_log_delays_its_lines_and_tears_none(tmp_path):
    log = events.MetricsLog(tmp_path / "metrics.jsonl")
    log({"event": "saved", "step": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size + 10, hard))
    try:
        log({"event": "saved", "step": 2})
        assert not log.flush()
        assert log.path.read_bytes().endswith(b"}\n") and len(events.read(log.path)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log({"event": "saved", "step": 3})
    assert [event["step"] for event in events.read(log.path)] == [1, 2, 3]


def test_no_checkpoint_is_published_before_its_line_is_written(tmp_path, tiny_recipe, monkeypatch):
    monkeypatch.setattr(events.MetricsLog, "flush", lambda self, to_disk=False: False)
    with pytest.raises(TrainingError, match=r"metrics\.jsonl cannot be written"):
        hc.train(tiny_recipe, run=tmp_path / "run")
    assert checkpoint.steps_in(tmp_path / "run" / "checkpoints") == []


def test_no_room_for_the_recipe_leaves_nothing(tmp_path, tiny_recipe):
    assert train(tiny_recipe, tmp_path / "run", tmp_path / "log", fault=("file_limit", 500)) == 2
    assert "recipe.toml" in processes.said(tmp_path / "log") and not (tmp_path / "run").exists()


def test_what_was_in_the_folder_before_stays(tmp_path, tiny_recipe):
    (tmp_path / "run" / ".git").mkdir(parents=True)
    assert train(tiny_recipe, tmp_path / "run", tmp_path / "log", fault=("file_limit", 500)) == 2
    assert [p.name for p in (tmp_path / "run").iterdir()] == [".git"]


def test_no_room_to_name_the_best_costs_only_a_warning(tmp_path, tiny_recipe, monkeypatch):
    set_best, calls = hc.Run.set_best, []

    def failing(self, best):
        calls.append(best)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        set_best(self, best)

    monkeypatch.setattr(hc.Run, "set_best", failing)
    run = hc.train(tiny_recipe, run=tmp_path / "run")
    assert [e["at"] for e in run.events() if e["event"] == "save_failed"] == [6]


def test_interruptions_do_not_pile_up(tmp_path, tiny_recipe):
    run, arguments = (
        tmp_path / "run",
        ["train", tiny_recipe, "--run", tmp_path / "run", "--set", "train.save_every=100"],
    )
    arguments += ["--set", "train.evaluate_every=100"]
    for step in (2, 4, 6, 8):
        fault = ("signal_at", signal.SIGINT, f"step {step}")
        assert processes.run(arguments, tmp_path / "log", fault) == 130
        arguments = ["resume", run]
    assert checkpoint.steps_in(run / "checkpoints") == [6, 8]


def test_one_failed_save_costs_only_a_warning(tmp_path, tiny_recipe, monkeypatch):
    publish, calls = checkpoint.publish, []

    def failing_once(*arguments):
        calls.append(arguments[1])
        if len(calls) == 1:
            raise OSError(28, "No space left on device")
        publish(*arguments)

    monkeypatch.setattr(checkpoint, "publish", failing_once)
    run = hc.train(tiny_recipe, run=tmp_path / "run")
    assert calls == [4, 6, 8, 12]
    assert [e["at"] for e in run.events() if e["event"] == "save_failed"] == [4]
    assert run.best() in (6, 12)


# Numbers that are not finite (row 11)


@pytest.fixture
def poisoned(monkeypatch):
    """Make the loss of some steps not finite; gives the set of calls to poison."""
    poison, calls, objective = set(), [], ShaRnn.objective

    def poisoning(self, tokens, state, progress):
        loss, after = objective(self, tokens, state, progress)
        calls.append(progress)
        if len(calls) in poison:
            factor = [math.nan, math.inf][len(calls) % 2]
            loss = Loss({"nll": loss.parts["nll"] * factor}, {"nll": 1.0})
        return loss, after

    monkeypatch.setattr(ShaRnn, "objective", poisoning)
    return poison


def test_a_step_that_is_not_finite_is_skipped_and_counted(tmp_path, tiny_recipe, poisoned):
    poisoned.update({5, 6})
    run = hc.train(tiny_recipe, run=tmp_path / "run", set=["train.save_every=1"], steps=7)
    kinds = [(e["event"], e["step"]) for e in lines(run.path) if e["event"] in ("step", "skipped")]
    assert kinds == [("step", n) for n in range(1, 5)] + [("skipped", 5), ("skipped", 6), ("step", 7)]
    assert [e["in_row"] for e in run.events() if e["event"] == "skipped"] == [1, 2]


def test_a_skipped_step_changes_nothing(tmp_path, tiny_recipe, poisoned, monkeypatch):
    poisoned.add(6)
    kept = {}
    publish = checkpoint.publish

    def keeping(folder, step, what):
        kept[step] = {
            name: {k: t.clone() for k, t in getattr(what, name).items()} for name in ("model", "optimiser", "state")
        }
        publish(folder, step, what)

    monkeypatch.setattr(checkpoint, "publish", keeping)
    hc.train(tiny_recipe, run=tmp_path / "run", set=["train.save_every=1"], steps=7)
    for name in ("model", "optimiser", "state"):
        assert all(tensor.equal(kept[6][name][key]) for key, tensor in kept[5][name].items()), name
        assert not all(tensor.equal(kept[7][name][key]) for key, tensor in kept[6][name].items()), name


def test_too_many_in_a_row_stop_the_run(tmp_path, tiny_recipe, poisoned):
    poisoned.update(range(6, 100))
    with pytest.raises(TrainingError, match="3 steps in a row"):
        hc.train(tiny_recipe, run=tmp_path / "run", set=["train.give_up_after=3"])
    for file in (tmp_path / "run").rglob("*.safetensors"):
        assert all(
            t.isfinite().all() for t in safetensors.torch.load(file.read_bytes()).values() if t.is_floating_point()
        )


def test_no_checkpoint_with_a_number_that_is_not_finite(tmp_path):
    for bad in (math.nan, math.inf):
        broken = checkpoint.Checkpoint({"w": torch.tensor([1.0, bad])}, {}, {}, {"step": 1})
        with pytest.raises(TrainingError, match="w holds numbers that are not finite"):
            checkpoint.publish(tmp_path, 1, broken)
    assert not list(tmp_path.iterdir())


# Two processes on one run (rows 16 and 17)


def test_a_run_has_one_holder(tmp_path, tiny_recipe):
    run = tmp_path / "run"
    first = processes.start(["train", tiny_recipe, "--run", run], tmp_path / "first", ("slow", 0.2))
    while not (run / "recipe.toml").exists():
        time.sleep(0.01)
    assert processes.run(["resume", run], tmp_path / "second") == 73
    assert f"process {first.pid}" in processes.said(tmp_path / "second")
    assert processes.finish(first) == 0


def test_names_taken_by_themselves_never_clash(tmp_path, tiny_recipe, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rivals = [processes.start(["train", tiny_recipe, "--steps", "2"], tmp_path / f"log{i}") for i in range(3)]
    assert [processes.finish(rival) for rival in rivals] == [0, 0, 0]
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["tiny", "tiny-2", "tiny-3"]


def test_a_lock_left_by_a_kill_is_taken_over(tmp_path, tiny_recipe, whole):
    run = tmp_path / "killed"
    assert train(tiny_recipe, run, tmp_path / "log", fault=("die_after", 7)) == -9
    assert (run / ".holder.json").exists()
    assert processes.run(["resume", run], tmp_path / "log") == 0
    assert_same(run, whole)


def test_a_failure_lets_go_of_the_run(tmp_path):
    with pytest.raises(TrainingError), lock.held(tmp_path):
        raise TrainingError("failed")
    assert not (tmp_path / ".holder.json").exists()
    with lock.held(tmp_path):
        assert json.loads((tmp_path / ".holder.json").read_text())["pid"] == os.getpid()


def test_a_record_of_another_boot_is_stale_and_a_live_one_is_believed(tmp_path):
    record = tmp_path / ".holder.json"
    alive = lock._identity(1)
    record.write_text(json.dumps({**alive, "boot": "another"}))
    with lock.held(tmp_path):
        pass
    record.write_text(json.dumps({**alive, "started": "1234567"}))  # the number was given to another process since
    with lock.held(tmp_path):
        pass
    record.write_text(json.dumps(alive))
    with pytest.raises(BusyError, match="process 1"), lock.held(tmp_path):
        pass

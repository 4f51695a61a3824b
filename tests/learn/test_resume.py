"""Resume is exact to the bit, and every part of a checkpoint is needed for that (fault table, rows 1, 3, 4, 19, 27)."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch

from headcount import recipe as recipes
from headcount.learn import checkpoint
from tests.faults import processes
from tests.faults.runs import assert_same, last_checkpoint, lines
from tests.faults.stops import rewrite


@pytest.fixture
def whole(tmp_path, tiny_recipe) -> Path:
    """An uninterrupted run."""
    run = tmp_path / "whole"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log") == 0, processes.said(tmp_path / "log")
    return run


@pytest.mark.parametrize("stop", [1, 4, 5, 6, 11, 12])
def test_killed_and_resumed_is_uninterrupted(tmp_path, tiny_recipe, whole, stop):
    run = tmp_path / "killed"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log", ("die_after", stop)) == -9
    assert processes.run(["resume", run], tmp_path / "log") == 0
    assert_same(run, whole)


@pytest.mark.parametrize(
    "change",
    [
        ["batches.streams=16", "batches.segment=30"],  # epochs of 38 bytes: wraps, the last segment shorter
        ["batches.lengths=merity2019", "batches.segment=40"],
        ["batches.accumulate=3"],
        ["optimiser.kind=min-trust-lamb", "schedule.kind=step-down", "schedule.down_at=0.6"],
        ["model.attention=[]"],
        ["model.attention=[0, 1]", "model.window_rule=segment"],
    ],
    ids=lambda change: change[0],
)
def test_every_kind_of_run_resumes_exactly(tmp_path, tiny_recipe, change):
    sets = [part for one in change for part in ("--set", one)]
    train = ["train", tiny_recipe, *sets, "--run"]
    assert processes.run([*train, tmp_path / "whole"], tmp_path / "log") == 0, processes.said(tmp_path / "log")
    assert processes.run([*train, tmp_path / "killed"], tmp_path / "log", ("die_after", 9)) == -9
    assert processes.run(["resume", tmp_path / "killed"], tmp_path / "log") == 0
    assert_same(tmp_path / "killed", tmp_path / "whole")


def test_without_the_step_or_the_best_the_run_differs(tmp_path, tiny_recipe, whole):
    run = tmp_path / "killed"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log", ("die_after", 10)) == -9
    shutil.copytree(run, tmp_path / "other")
    rewrite(run, 8, lambda parts: parts["record"].update(best={"step": 8, "bits_per_byte": 0.001}))
    assert processes.run(["resume", run], tmp_path / "log") == 0
    assert (run / "best.json").read_text() != (whole / "best.json").read_text()

    run = tmp_path / "other"
    saved = checkpoint.read(run / "checkpoints", 8)
    shutil.rmtree(run / "checkpoints" / "00000008")
    record = {**saved.record, "step": 7}
    moved = checkpoint.Checkpoint(saved.model, saved.optimiser, saved.state, record)
    checkpoint.publish(run / "checkpoints", 7, moved)
    assert processes.run(["resume", run], tmp_path / "log") == 0
    assert last_checkpoint(run)["model.safetensors"] != last_checkpoint(whole)["model.safetensors"]


def test_a_torn_line_and_lines_after_the_checkpoint_are_cut(tmp_path, tiny_recipe, whole):
    run = tmp_path / "killed"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log", ("die_after", 11)) == -9
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"event": "step", "step": 12, "bits_p')
    assert processes.run(["resume", run], tmp_path / "log") == 0
    assert_same(run, whole)


def test_a_torn_line_does_not_swallow_what_is_written_next(tmp_path, tiny_recipe):
    run = tmp_path / "killed"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log", ("die_after", 9)) == -9
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"event": "step", "st')
    assert processes.run(["resume", run, "--steps", "20"], tmp_path / "log", ("die_after", 10)) == -9
    assert processes.run(["resume", run], tmp_path / "log") == 0, processes.said(tmp_path / "log")
    assert lines(run)[-1]["step"] == 20


def test_longer_from_the_middle_is_exact_too(tmp_path, tiny_recipe):
    for name in ("one", "two"):
        assert processes.run(["train", tiny_recipe, "--run", tmp_path / name], tmp_path / "log", ("die_after", 9)) == -9
    assert processes.run(["resume", tmp_path / "one", "--steps", "19"], tmp_path / "log") == 0
    assert processes.run(["resume", tmp_path / "two", "--steps", "19"], tmp_path / "log", ("die_after", 13)) == -9
    assert processes.run(["resume", tmp_path / "two"], tmp_path / "log") == 0
    assert_same(tmp_path / "one", tmp_path / "two")
    assert [e["step"] for e in lines(tmp_path / "one") if e["event"] == "evaluated"] == [6, 12, 18, 19]


def test_a_finished_run_says_so(tmp_path, whole):
    before = {p: p.read_bytes() for p in whole.rglob("*") if p.is_file() and p.name != "figures.jsonl"}
    assert processes.run(["resume", whole], tmp_path / "log") == 0
    assert "is finished" in processes.said(tmp_path / "log")
    assert before == {p: p.read_bytes() for p in whole.rglob("*") if p.is_file() and p.name != "figures.jsonl"}


def test_longer_is_logged_as_a_new_schedule_and_exact_in_itself(tmp_path, whole):
    shutil.copytree(whole, tmp_path / "one")
    shutil.copytree(whole, tmp_path / "two")
    best_before = json.loads((whole / "best.json").read_text())
    assert processes.run(["resume", tmp_path / "one", "--steps", 20], tmp_path / "log") == 0
    assert processes.run(["resume", tmp_path / "two", "--steps", 20], tmp_path / "log", ("die_after", 13)) == -9
    assert recipes.read(tmp_path / "two" / "recipe.toml").train.steps == 20
    assert processes.run(["resume", tmp_path / "two"], tmp_path / "log") == 0
    assert_same(tmp_path / "one", tmp_path / "two")
    assert lines(tmp_path / "one")[-1]["step"] == 20
    events = [json.loads(line) for line in (tmp_path / "one" / "metrics.jsonl").read_text().splitlines()]
    assert {"event": "rescheduled", "at": 12, "steps": 20} in events
    assert json.loads((tmp_path / "one" / "best.json").read_text())["bits_per_byte"] <= best_before["bits_per_byte"]
    assert processes.run(["resume", tmp_path / "one", "--steps", 15], tmp_path / "log") == 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("lr = 0.01", "lr = 0.02"), "optimiser.lr was 0.01, is 0.02"),
        (("seed = 3", "seed = 4"), "seed was 3, is 4"),
        (("steps = 12", "steps = 13"), "train.steps was 12, is 13"),
        (("width = 16", "width = 32"), "model.width was 16, is 32"),
        (("window = 40", "windw = 40"), "model.windw was null, is 40"),
    ],
)
def test_a_changed_recipe_is_refused_with_the_difference(tmp_path, whole, change, expected):
    file = whole / "recipe.toml"
    assert change[0] in file.read_text()
    file.write_text(file.read_text().replace(*change))
    assert processes.run(["resume", whole], tmp_path / "log") == 2
    assert expected in processes.said(tmp_path / "log")


def test_a_changed_corpus_is_refused(tmp_path, tiny_recipe, text_file):
    run = tmp_path / "killed"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log", ("die_after", 9)) == -9
    text_file.write_bytes(text_file.read_bytes() + b"!")
    assert processes.run(["resume", run], tmp_path / "log") == 2
    assert "has changed: its sha256 is" in processes.said(tmp_path / "log")
    text_file.unlink()
    assert processes.run(["resume", run], tmp_path / "log") == 2
    assert str(text_file) in processes.said(tmp_path / "log")


def test_another_machine_is_named(tmp_path, tiny_recipe):
    run = tmp_path / "killed"
    assert processes.run(["train", tiny_recipe, "--run", run], tmp_path / "log", ("die_after", 9)) == -9
    rewrite(run, 8, lambda parts: parts["record"]["fingerprint"].update(threads=64, torch="1.0"))
    assert processes.run(["resume", run], tmp_path / "log") == 0
    said = processes.said(tmp_path / "log")
    assert "bits may differ" in said and "threads was 64, is 1" in said and 'torch was "1.0"' in said


def test_safetensors_hold_nothing_but_tensors(whole):
    for file in whole.rglob("*.safetensors"):
        header = json.loads(file.read_bytes()[8 : 8 + int.from_bytes(file.read_bytes()[:8], "little")])
        assert "__metadata__" not in header or header["__metadata__"] == {"format": "pt"}
        assert safetensors.torch.load(file.read_bytes())

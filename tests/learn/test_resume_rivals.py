"""Runs of the rivals resume to the bit: random windows and momentum, streams that restart, a memory of segments."""

import pytest
from safetensors import safe_open

import headcount as hc
from tests.faults import processes
from tests.faults.rivals import CHARACTER, XL
from tests.faults.runs import assert_same, lines

STREAMS = ["batches.kind=streams", "batches.segment=7", "optimiser.kind=adamw", "evaluate.protocol=carried"]


@pytest.fixture
def recipe(tmp_path, text_file):
    def written(text):
        path = tmp_path / "recipe.toml"
        path.write_text(text.format(text=text_file))
        return path

    return written


KINDS = {
    "windows, momentum": (CHARACTER, []),
    "streams, adamw": (CHARACTER, STREAMS),
    "transformer-xl": (XL, []),
    "transformer-xl, recomputed": (XL, ["model.recompute=layers", "model.window_rule=memory"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_five_points_and_resumed_is_uninterrupted(tmp_path, recipe, kind):
    """Layer 1 retires at step 2, layer 2 at step 4: before, at and after a retirement, a save, an evaluation."""
    text, settings = KINDS[kind]
    train = ["train", recipe(text), *(part for one in settings for part in ("--set", one)), "--run"]
    whole = tmp_path / "whole"
    assert processes.run([*train, whole], tmp_path / "log") == 0, processes.said(tmp_path / "log")
    assert [line["step"] for line in lines(whole) if line["event"] == "evaluated"] == [6, 12]
    for stop in (1, 3, 4, 6, 11):
        run = tmp_path / f"killed{stop}"
        assert processes.run([*train, run], tmp_path / "log", ("die_after", stop)) == -9
        assert processes.run(["resume", run], tmp_path / "log") == 0, processes.said(tmp_path / "log")
        assert_same(run, whole)


def optimiser_of(run):
    with safe_open(max((run / "checkpoints").glob("0*")) / "optimiser.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)


def test_a_longer_schedule_takes_retired_classifiers_back_without_their_old_momentum(tmp_path, recipe):
    """Layer 1 of 3 retires at a sixth, layer 2 at a third: of 12 steps both did, of 60 layer 2 is back to step 20."""
    run, adamw = tmp_path / "run", [*STREAMS, "train.evaluate_every=100"]
    hc.train(recipe(CHARACTER), run=run, set=adamw)
    assert not [name for name in optimiser_of(run) if "auxiliary.layer" in name]
    hc.resume(run, steps=60)
    events = [event for event in hc.Run(run).events() if event["event"] == "step"]
    assert {event["step"] for event in events if "layer 2" in event["losses"]} == {1, 2, 3, 4, *range(13, 21)}
    assert not [name for name in optimiser_of(run) if "auxiliary.layer" in name]


def test_every_loss_has_its_name_in_the_log(tmp_path, recipe):
    run = hc.train(recipe(CHARACTER), run=tmp_path / "run")
    first, *_, last = (event["losses"] for event in run.events() if event["event"] == "step")
    assert set(first) == {"nll", "second", "layer 1", "layer 1 second", "layer 2", "layer 2 second"}
    assert set(last) == {"nll", "second"}

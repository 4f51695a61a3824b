"""Runs of the rivals resume to the bit: random windows and momentum, streams that restart, a memory of segments."""

import pytest

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

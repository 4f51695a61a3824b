"""The comparison of models: which figure of a run stands on its page."""

import pytest

from benchmarks import comparison
from benchmarks.comparison import by_the_recipe, record, settings, value
from benchmarks.tune import RECIPES, whole_run
from headcount import load
from headcount.cli import run
from headcount.recipe import read
from tests.conftest import make_text

SMALL = ["train.steps=3", "batches.segment=16", "evaluate.limit=200", "model.width=8"]
MODELS = {
    "sha_rnn": ["model.window=16"],
    "transformer_xl": ["model.window=16", "model.heads=2", "model.inner=8", "model.layers=1"],
    "char_transformer": ["model.context=16", "model.heads=2", "model.inner=8", "evaluate.protocol=sliding-4"],
}


@pytest.mark.parametrize("name", MODELS)
def test_figures_by_other_lengths_are_kept_but_not_shown(name, tmp_path):
    (tmp_path / "my.txt").write_bytes(make_text(10_000))
    settings = [f"corpus.path={tmp_path / 'my.txt'}", *SMALL, *MODELS[name]]
    given = [part for setting in settings for part in ("--set", setting)]
    assert run(["train", f"recipes/tiny/{name}.toml", *given, "--run", str(tmp_path / "run")]) == 0
    lm, slides = load(tmp_path / "run"), name == "char_transformer"
    others = [{"protocol": "carried", "window": 5}, {"protocol": "sliding-2"}, {"protocol": "alrfou2018"}]
    others += [{"protocol": "dai2019"}, {"protocol": "merity2019"}, {"protocol": "sliding-2", "window": 8}]
    others += [{"protocol": "carried", "clamp": 3}] if name == "transformer_xl" else []
    for how in others:
        lm.evaluate(split="test", **how)
    lm.evaluate(split="test", protocol="carried", limit=300)
    carried = lm.evaluate(split="test", protocol="carried").value
    sliding = lm.evaluate(split="test", protocol="sliding-4").value if slides else None
    lm.evaluate(split="test", protocol="carried", curve="window", window=16)
    assert whole_run(tmp_path / "run", "")["test"] == (sliding if slides else carried)
    found = record(tmp_path / "run")
    assert value(found, "test", True) == carried and value(found, "test", False) == sliding
    kept = [(f["protocol"], tuple(f["how"].items()), f["bytes"]) for f in found["figures"]]
    assert len(set(kept)) == len(kept) >= len(others) + 3  # nothing that tells them apart is lost
    del found["figures"][-1]["as_the_page_says"]  # a record from before
    assert value(found, "test", True) is not None


@pytest.mark.parametrize("name", MODELS)
def test_runs_of_another_recipe_are_no_seeds_of_this_one(name):
    def found(*changes: str) -> dict:
        recipe = read(RECIPES / f"{name}.toml", changes)
        return {"model": recipe.model["kind"], "settings": settings(recipe)}

    assert by_the_recipe(found()) and by_the_recipe(found("seed=7", "train.steps=9", "model.recompute=layers"))
    assert not by_the_recipe(found("optimiser.lr=0.5")) and not by_the_recipe(found("model.width=32"))


def test_speed_and_memory_are_of_the_runs_on_the_most_cores(tmp_path, monkeypatch):
    def found(seed: int, threads: int, seconds: float, test: float, steps: int = 7) -> dict:
        figure = {"split": "test", "bytes": 9, "protocol": "carried", "value": test}
        cost = {"bytes": 1_000, "seconds": seconds, "memory": 2**20 * seed, "threads": threads, "steps": steps}
        return {
            "model": "sha-rnn",
            "seed": seed,
            "parameters": 5,
            **cost,
            "figures": [figure],
            "weights": "ab" * 32,
            "date": "2026-01-01",
        }

    monkeypatch.setattr(comparison, "RESULTS", tmp_path)
    made = [found(2, 1, 2.0, 9.5, steps=6), found(3, 2, 30.0, 2.5), found(2, 1, 2.0, 2.0), found(1, 2, 10.0, 1.5)]
    comparison.write_page(made)
    rows = [line for line in (tmp_path / "comparison.md").read_text().splitlines() if line.startswith("| SHA-RNN")]
    assert rows[0] == "| SHA-RNN | 3: 1, 2, 3 | 5 | 1,000 | 2 | 20 | 67 | 3 | 2.0000 (1.5000 – 2.5000) |  |"
    assert rows[2] == "| SHA-RNN | 2 | 5 | 1,000 | 1 |  |  |  | 2.0000 |  | abababababab | 2026-01-01 |"
    other = "| SHA-RNN (other steps: not above) | 2 | 5 | 1,000 | 1 |  |  |  | 9.5000 |  | abababababab | 2026-01-01 |"
    assert rows[4] == other and len(rows) == 5

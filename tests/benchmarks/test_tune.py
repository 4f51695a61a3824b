"""Tuning as equal as it is said to be: what counts as a setting that was tried at length."""

import json

import pytest

from benchmarks import tune
from benchmarks.trials import BASES, TRIALS
from headcount.recipe import from_dict, read

XL = "transformer-xl"


def trial(*settings: str, budget: int = 8_000) -> dict:
    return {
        "model": XL,
        "budget": budget,
        "settings": list(settings),
        "bytes": 1_000_000,
        "trial": "x",
        "bits_per_byte": 2,
    }


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """Adds a whole run of Transformer-XL's base to the records, changed by what is given, or as `note` says."""
    monkeypatch.setattr(tune, "WHOLE", tmp_path / "tuning_runs.jsonl")

    def add(note: str = "", **changed: object) -> None:
        settings = {**tune.varied(from_dict(BASES[XL], ())), **changed}
        of_the_run = {
            "bits_per_byte": 2.5,
            "parameters": 7,
            "steps": 9,
            "bytes": 3_000_000,
            "seconds": 5.0,
            "date": "today",
        }
        with tune.WHOLE.open("a") as lines:
            lines.write(json.dumps({"model": XL, "settings": settings, "note": note, **of_the_run}) + "\n")

    return add


def count(*found: dict) -> int:
    """Settings at length, as the page says."""
    return int(row(*found)[3])


def row(*found: dict, model: str = XL) -> list[str]:
    """Of the table that counts trials, without the columns of the best."""
    lines = [line for line in tune.trial_counts(list(found)) if line.startswith(f"| {model} |")]
    cells = [cell.strip() for cell in lines[0].split("|")]
    return [*cells[:3], *cells[-4:-1]]


def test_seeds_repeats_and_short_trials_are_no_new_settings(whole):
    assert count(trial(), trial(), trial("seed=2"), trial("optimiser.lr=0.002")) == 1
    assert count(trial(), trial("optimiser.lr=0.004"), trial("model.window=128", budget=tune.SHORT_TRIAL)) == 2


def test_a_whole_run_counts_with_the_trial_of_its_settings(whole):
    whole()
    whole(seed=7)
    assert count(trial()) == 1
    whole(**{"optimiser.lr": 0.004})
    assert count(trial()) == 2
    whole(note="weights begin orthogonal")
    assert count(trial()) == 3


def test_keys_that_came_later_are_as_their_default_has_them():
    """Whatever the base or the desk recipe says."""
    defaults = tune.varied(from_dict({"model": {"kind": XL}}, ()))
    assert tune.as_now(XL, {"seed": 3}) == {**defaults, "seed": 3}
    assert tune.as_now(XL, {"model.recompute": False, "model.clamp": None, "model.window": 9})["model.window"] == 9


@pytest.mark.parametrize("model", BASES)
def test_settings_of_today_stay_as_they_are(model):
    desk = tune.varied(read(tune.RECIPES / f"{model.replace('-', '_')}.toml"))
    assert tune.as_now(model, desk) == desk


def test_ngrams_and_other_models_are_counted_apart(whole):
    ngrams, plain = {"budget": 8_000, "settings": ["model.ngrams=[2]"]}, {"budget": 8_000, "settings": []}
    old = [{**trial(), **own} for own in (ngrams, plain, {"budget": tune.SHORT_TRIAL, "trial": "n-grams of 2"})]
    for record in old:
        del record["model"]  # the first records had one model only
    assert row(*old, trial(), model="sha-rnn") == ["", "sha-rnn", "0", "1", "1.0 (1.0 – 1.0)", "1 + 1"]
    assert row(*old, trial(), trial(budget=tune.SHORT_TRIAL)) == ["", XL, "1", "1", "1.0 (1.0 – 1.0)", "0 + 0"]


def test_a_rivals_whole_run_says_what_its_recipe_has_not(whole):
    """The base has another kind of schedule, with keys that the recipe has not."""
    whole(seed=4)
    changed = next(line for line in tune.whole_runs() if "| 2.5000 |" in line)
    assert "schedule.kind = cosine" in changed and "seed = 4" in changed and "model.width = 192" in changed
    assert row(trial("optimiser.lr=0.004"))[4] == "2.0 (1.0 – 3.0)"


def test_no_trial_stands_twice():
    keys = [(t.name, t.budget) for t in TRIALS]
    assert len(set(keys)) == len(keys)

"""Tuning as equal as it is said to be: what counts as a setting that was tried at length."""

import json

import pytest

from benchmarks import tune
from benchmarks.trials import BASES, TRIALS
from headcount.recipe import from_dict

XL = "transformer-xl"


def trial(*settings: str, budget: int = 8_000) -> dict:
    return {"model": XL, "budget": budget, "settings": list(settings)}


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """Adds a whole run of Transformer-XL's base to the records, changed by what is given; without `note` no change."""
    monkeypatch.setattr(tune, "WHOLE", tmp_path / "tuning_runs.jsonl")

    def add(note: str = "", **changed: object) -> None:
        settings = {**tune.varied(from_dict(BASES[XL], ())), **changed}
        with tune.WHOLE.open("a") as lines:
            lines.write(json.dumps({"model": XL, "settings": settings, "note": note}) + "\n")

    return add


def count(*found: dict) -> int:
    return len(tune.settings_at_length(XL, list(found)))


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


def test_keys_that_came_later_are_as_their_default_has_them(whole):
    defaults = tune.varied(from_dict(BASES[XL], ()))
    assert tune.as_now({"seed": 3}, defaults) == {**defaults, "seed": 3}


def test_ngrams_and_other_models_are_left_aside(whole, monkeypatch):
    records = [{"budget": 8_000, "settings": ["model.ngrams=[2]"]}, {"budget": 8_000, "settings": []}, trial()]
    assert len(tune.settings_at_length("sha-rnn", records)) == 1  # the first records had one model only


def test_no_trial_stands_twice():
    keys = [(t.name, t.budget) for t in TRIALS]
    assert len(set(keys)) == len(keys)

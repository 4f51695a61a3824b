"""Runs of tokens that were learnt resume to the bit, with what they learnt from the run and not from the corpus."""

import pytest

from headcount.text.cache import cache_folder
from tests.faults import processes
from tests.faults.runs import assert_same

KINDS = {
    "characters": ["tokens.kind=characters"],
    "words": ["tokens.kind=words", "tokens.vocabulary=120"],
    "wordpieces": ["tokens.kind=wordpieces", "tokens.vocabulary=300"],
    "legacy-txl": ["tokens.kind=legacy-txl"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_killed_and_resumed_is_uninterrupted(tmp_path, tiny_recipe, kind):
    train = ["train", tiny_recipe, *(part for one in KINDS[kind] for part in ("--set", one)), "--run"]
    whole = tmp_path / "whole"
    assert processes.run([*train, whole], tmp_path / "log") == 0, processes.said(tmp_path / "log")
    for stop in (3, 9):
        run = tmp_path / f"killed{stop}"
        assert processes.run([*train, run], tmp_path / "log", ("die_after", stop)) == -9
        for kept in cache_folder().glob("tokens-*"):
            kept.unlink()
        assert processes.run(["resume", run], tmp_path / "log") == 0, processes.said(tmp_path / "log")
        assert not list(cache_folder().glob("tokens-*")), "a run has its own tokens"
        assert_same(run, whole)


@pytest.mark.parametrize("kind", ["characters", "wordpieces"])
def test_twice_the_same_run(tmp_path, tiny_recipe, kind):
    train = ["train", tiny_recipe, *(part for one in KINDS[kind] for part in ("--set", one)), "--run"]
    for name in ("one", "two"):
        for kept in cache_folder().glob("tokens-*"):
            kept.unlink()
        assert processes.run([*train, tmp_path / name], tmp_path / "log") == 0
    assert_same(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "one" / "tokens.json").read_bytes() == (tmp_path / "two" / "tokens.json").read_bytes()

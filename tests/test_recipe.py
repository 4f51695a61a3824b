"""Recipes: read, overridden, refused with a sentence, written and read again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount import recipe as recipes
from headcount.errors import RequestError
from headcount.models import configure
from headcount.recipe import from_dict, read, to_toml
from headcount.tables import ConstantTable
from headcount.text.tokens import expected_vocabulary

OURS = sorted(Path("recipes").rglob("*.toml"))


@pytest.mark.parametrize("path", OURS, ids=str)
def test_every_recipe_of_ours_is_valid_and_survives_writing(path):
    recipe = read(path)
    vocabulary = recipe.published.vocabulary if recipe.published else None
    cls, config = configure(recipe.model, vocabulary or expected_vocabulary(recipe.tokens))
    text = to_toml(recipe, cls.Config)
    again = from_dict(recipes.tomllib.loads(text))
    assert again == recipe and config


def test_there_are_recipes_for_the_tests():
    assert Path("recipes/tiny/sha_rnn.toml") in OURS and len(OURS) >= 6


def test_overrides_are_toml_or_else_plain_strings():
    sets = ["model.width=32", "corpus.path=my file.txt", "optimiser.betas=[0.8, 0.9]", "seed=7", 'tokens.kind="bytes"']
    recipe = from_dict({}, sets)
    assert recipe.model["width"] == 32 and recipe.corpus.path == "my file.txt"
    assert recipe.optimiser.betas == (0.8, 0.9) and recipe.seed == 7


def test_overrides_replace_what_could_not_stand_beside_them():
    tables = {"train": {"epochs": 3}, "schedule": {"kind": "cosine", "warmup": 0.1, "floor": 0.2}}
    recipe = from_dict(tables, ["train.steps=5", "schedule.kind=constant"])
    assert recipe.train.steps == 5 and recipe.train.epochs is None
    assert recipe.schedule == ConstantTable(warmup=0.1)
    assert from_dict(tables, ["schedule.warmup_steps=4"]).schedule.warmup is None


def test_another_kind_keeps_what_was_asked_for_in_any_order_and_what_is_not_its_own():
    tables = {"batches": {"streams": 4, "segment": 32}, "model": {"kind": "sha-rnn", "boom": 2}}
    for override in (["batches.kind=windows", "batches.segment=16"], ["batches.segment=16", "batches.kind=windows"]):
        batches = from_dict(tables, override).batches
        assert (batches.kind, batches.streams, batches.segment) == ("windows", 4, 16)
    model = from_dict(tables, ["model.width=8", "model.kind=transformer-xl"]).model
    assert model == {"kind": "transformer-xl", "width": 8}
    words = {"tokens": {"kind": "words", "vocabulary": 50}}
    assert from_dict(words, ["tokens.kind=bytes"]).tokens.vocabulary is None


def test_another_corpus_does_not_keep_the_place_parts_and_hash_of_the_first():
    tables = {"corpus": {"name": "enwik8", "path": "enwik8.gz", "split": [0.8, 0.1, 0.1], "sha256": "0" * 64}}
    for overrides in (["corpus.path=w.bz2", "corpus.name=wikipedia"], ["corpus.name=wikipedia", "corpus.path=w.bz2"]):
        corpus = from_dict(tables, overrides).corpus
        assert (corpus.name, corpus.path, corpus.split, corpus.sha256) == ("wikipedia", "w.bz2", None, None)
    assert from_dict(tables, ["corpus.name=enwik8"]).corpus.split == (0.8, 0.1, 0.1)
    assert from_dict({"corpus": {"split": [0.8, 0.2]}}, ["corpus.path=my.txt"]).corpus.split == (0.8, 0.2)


@pytest.mark.parametrize("file", OURS, ids=str)
def test_recipes_leave_the_parts_to_the_corpus(file):
    """Or `--set corpus.name=wikitext-2`, which brings its own, would be refused."""
    assert read(file).corpus.split is None


def test_an_override_cannot_smuggle_in_other_keys():
    recipe = from_dict({}, ["corpus.path=1\n[train]\nsteps = 3"])
    assert recipe.train.steps is None and recipe.corpus.path == "1\n[train]\nsteps = 3"


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"modle": {}}, "did you mean 'model'"),
        ({"train": {"stepz": 3}}, "unknown key 'train.stepz': did you mean 'steps'"),
        ({"train": {"steps": 0}}, "train.steps = 0: must be greater than or equal to 1"),
        ({"train": {"steps": 1.5}}, "train.steps = 1.5: must be a valid integer"),
        ({"train": {"steps": "9"}}, "train.steps = '9': must be a valid integer"),
        ({"train": {"steps": True}}, "train.steps = True"),
        ({"train": {"steps": 3, "epochs": 3}}, "steps and epochs contradict"),
        ({"train": 3}, "must be a table"),
        ({"schedule": {"warmup": 0.1, "warmup_steps": 3}}, "warmup and warmup_steps contradict"),
        ({"schedule": {"kind": "cosin"}}, "schedule.kind = 'cosin': did you mean 'cosine'"),
        ({"schedule": {"kind": "constant", "floor": 0.1}}, "unknown key 'schedule.floor'"),
        ({"optimiser": {"kind": ["adamw"]}}, "optimiser.kind"),
        ({"optimiser": {"lr": float("nan")}}, "optimiser.lr = nan: must be a finite number"),
        ({"optimiser": {"lr": float("inf")}}, "optimiser.lr = inf"),
        ({"optimiser": {"lr": -1.0}}, "optimiser.lr = -1.0: must be greater than 0"),
        ({"optimiser": {"kind": "adamw", "min_trust": 0.3}}, "unknown key 'optimiser.min_trust'"),
        ({"corpus": {"split": [0.5, 0.6]}}, "add up to 1"),
        ({"corpus": {"split": [1.0, 0.0]}}, "train and valid above 0"),
        ({"batches": {"streams": 2, "accumulate": 3}}, "only 2"),
        ({"batches": {"lengths": "random"}}, "batches.lengths = 'random'"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": "one"}, "seed = 'one'"),
        ({"tokens": {"kind": "letters"}}, "tokens.kind = 'letters': must be 'bytes'"),
    ],
)
def test_what_is_wrong_is_one_sentence_that_names_the_key(tables, sentence):
    with pytest.raises(RequestError) as caught:
        from_dict(tables)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("override", ["", "=3", "steps", ".=1", "train.=1", "seed.x=1"])
def test_overrides_of_the_wrong_form_are_refused(override):
    with pytest.raises(RequestError):
        from_dict({"seed": 1}, [override])


def test_files_that_are_no_recipes(tmp_path):
    for content in (b"a = ", b"\xff\xfe", b"[train\n"):
        (tmp_path / "x.toml").write_bytes(content)
        with pytest.raises(RequestError, match="not TOML"):
            read(tmp_path / "x.toml")
    with pytest.raises(RequestError, match="No such file"):
        read(tmp_path / "none.toml")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**63 - 1))
def test_any_path_survives_writing(path, seed):
    recipe = from_dict({"corpus": {"path": path}, "seed": seed})
    assert from_dict(recipes.tomllib.loads(to_toml(recipe))) == recipe


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4))
def test_no_value_of_any_kind_is_a_traceback(value):
    for table, key in (("train", "steps"), ("corpus", "split"), ("optimiser", "betas"), ("corpus", "path")):
        try:
            from_dict({table: {key: value}})
        except RequestError as error:
            assert key in str(error)

"""Counts from a text, a corpus or numbers; a run's figure in every unit, and what is to be minded."""

import json
import math

import pytest

from headcount.errors import RequestError
from headcount.use.convert import convert_figure, counts_of, figure_of, perplexity_of
from tests.conftest import a_figure


def figure(*, split="valid", value=2.0, exact=True, left_out=0, counts=True, kind="bytes", bytes=100):
    kept = {"counts": {"bytes": 100 + left_out, "characters": 80, "words": 18, "lines": 2}} if counts else {}
    return a_figure(
        value=value,
        nats=value * bytes * math.log(2),
        bytes=bytes,
        protocol={"not_scored": left_out},
        corpus={"name": "my", "split": split, "sha256": "a" * 64, **kept},
        tokens={"kind": kind, "scored": 50, "exact": exact},
    )


def test_counts_come_from_the_one_thing_that_is_named(tmp_path):
    (tmp_path / "my.txt").write_bytes(b"one two\n")
    found = counts_of(str(tmp_path / "my.txt"), None, None, {"bytes": None}, 4)
    assert (found.bytes, found.words, found.lines, found.tokens) == (8, 2, 1, 4)
    assert counts_of(None, None, None, {"bytes": 9, "words": None}, None).bytes == 9
    assert counts_of(None, None, None, {}, 7).tokens == 7


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("my.txt", "enwik8", None, {}, None), "name one of them"),
        (("my.txt", None, None, {"bytes": 3}, None), "name one of them"),
        ((None, None, "test", {"bytes": 3}, None), "--split belongs to --corpus"),
        ((None, None, None, {"bytes": None}, None), "converted by counts"),
    ],
)
def test_counts_that_contradict_each_other_or_are_missing(asked, reason):
    with pytest.raises(RequestError, match=reason):
        counts_of(*asked)


def test_a_figure_is_converted_by_its_own_counts():
    result, minded = convert_figure(figure())
    assert result.bits == 200 and minded == []
    assert result.values["bits-per-character"] == 2.5
    assert result.values["perplexity-per-word-with-eos"] == pytest.approx(2**10)
    assert result.values["perplexity-per-token"] == pytest.approx(2**4)


def test_what_is_to_be_minded():
    result, (said,) = convert_figure(figure(left_out=1))
    assert said == "Not scored: 1 byte, counted as if it had cost as much as the others."
    assert "perplexity-per-token" not in result.values and result.values["bits-per-byte"] == 2.0
    result, (said,) = convert_figure(figure(exact=False))
    assert "cannot be restored" in said and set(result.values) == {"bits-per-byte", "perplexity-per-token"}
    result, (said,) = convert_figure(figure(counts=False))
    assert "not kept" in said and set(result.values) == {"bits-per-byte", "perplexity-per-token"}


def test_perplexity_as_published_figures_on_wikitext_are():
    assert perplexity_of(figure()) == pytest.approx(2**10)
    assert perplexity_of(figure(kind="words", exact=False)) == pytest.approx(2**4)  # tokens are words and <eos>
    assert perplexity_of(figure(counts=False)) is None


def test_a_runs_figure(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text('[corpus]\nname = "stdlib"\n[model]\nkind = "sha-rnn"\n')
    with pytest.raises(RequestError, match=r"has no figure yet: headcount evaluate \S+run$"):
        figure_of(str(run), None)
    point = figure(value=9.0)
    point["protocol"]["curve"] = "window"
    lines = [figure(value=2.0), figure(split="test", value=3.0), figure(split="test", value=4.0), point]
    (run / "figures.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert figure_of(str(run), "test")["value"] == 4.0 == figure_of(str(run), None)["value"]
    assert figure_of(str(run), "valid")["value"] == 2.0
    with pytest.raises(RequestError, match=r"no figure on train yet: headcount evaluate \S+ --split train"):
        figure_of(str(run), "train")

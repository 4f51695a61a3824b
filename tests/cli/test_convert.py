"""`headcount convert`: where its counts come from, what it prints, what it refuses."""

import json
import math
import re

import pytest

from headcount.cli import run
from tests.conftest import make_text


def test_a_text_gives_the_counts(tmp_path, capsys):
    (tmp_path / "my.txt").write_bytes("für alle\n<unk> da\n".encode())
    assert run(["convert", "2", "bits-per-byte", "--text", str(tmp_path / "my.txt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bits"] == 38 and found["counts"]["words"] == 4 and found["counts"]["unknown"] == 1
    assert found["values"]["bits-per-character"] == pytest.approx(38 / 18)
    assert found["values"]["perplexity-per-word-with-eos"] == pytest.approx(2 ** (38 / 6))
    assert [c["unit"] for c in found["conditions"]].count("bits-per-byte") == 2
    assert run(["convert", "2", "bits-per-byte", "--text", str(tmp_path / "my.txt")]) == 0
    said = capsys.readouterr().out
    assert "19 bytes" in said and "6 words and <eos>" in said and "<unk> is not counted" in said


def test_numbers_or_a_corpus_give_the_counts(capsys, tmp_path, monkeypatch):
    assert run(["convert", "1.033", "bits-per-byte", "--bytes", "826189", "--words", "159658"]) == 0
    assert "40.6592" in capsys.readouterr().out
    (tmp_path / "one.py").write_bytes(make_text(8_000))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert run(["convert", "2", "bits-per-byte", "--corpus", "stdlib", "--split", "valid", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["bytes"] == 400
    assert run(["convert", "8", "bits-per-byte", "--bytes", "9999", "--words", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"]["perplexity-per-word"] is None


def test_large_numbers_and_a_single_word_are_readable(capsys):
    counts = ["--bytes", "300", "--words", "5", "--lines", "1", "--characters", "300"]
    assert run(["convert", "1", "bits-per-byte", *counts]) == 0
    said = capsys.readouterr().out
    assert "+1.1518e+18" in said and re.search(r"\d{9}", said) is None
    assert run(["convert", "1", "bits-per-byte", "--bytes", "9", "--words", "1"]) == 0
    said = capsys.readouterr().out
    assert "1 word\n" in said and "1 words" not in said


def test_a_run_converts_its_figure_by_the_counts_of_the_text_it_was_measured_on(tmp_path, tiny_recipe, capsys):
    assert run(["train", str(tiny_recipe), "--run", str(tmp_path / "run")]) == 0
    held_out = make_text(20_000)[18_000:19_000]
    capsys.readouterr()
    assert run(["convert", str(tmp_path / "run"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["bytes"] == found["figure"]["corpus"]["bytes"] == 500  # evaluate.limit
    assert found["counts"]["words"] == len(held_out[:500].split()) and found["counts"]["tokens"] == 500
    bits = found["figure"]["nats"] / math.log(2)
    assert found["bits"] == pytest.approx(bits) and found["mind"] == []
    assert found["values"]["perplexity-per-word"] == pytest.approx(2 ** (bits / found["counts"]["words"]))
    assert run(["convert", str(tmp_path / "run"), "--split", "test"]) == 2
    assert "no figure on test yet: headcount evaluate" in capsys.readouterr().err
    assert run(["evaluate", str(tmp_path / "run"), "--split", "test", "--protocol", "merity2019"]) == 0
    figure = capsys.readouterr().out
    assert run(["convert", str(tmp_path / "run"), "--split", "test"]) == 0
    said = capsys.readouterr().out
    assert (
        said.startswith(f"{figure.split()[0]} bits per byte · merity2019 · text test, 992 bytes")
        and "1,000 bytes" in said
    )
    assert "Not scored: 8 bytes, counted as if" in said and "per-token" not in said


def test_figures_without_counts_and_those_that_are_not_lossless(tmp_path, tiny_recipe, capsys):
    words = ["--set", "tokens.kind=legacy-txl"]
    assert run(["train", str(tiny_recipe), *words, "--run", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert run(["convert", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "cannot be restored from its tokens" in said and "per-word" not in said
    assert "\nbits-per-byte, not lossless " in said and "\nperplexity-per-token, not lossless " in said
    file = tmp_path / "run" / "figures.jsonl"
    old = json.loads(file.read_text())
    del old["corpus"]["counts"]
    old["tokens"]["exact"] = True
    file.write_text(json.dumps(old) + "\n")
    assert run(["convert", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "counts of its text were not kept" in said and "per-word" not in said


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["1.0"],
        ["nowhere"],
        ["nowhere", "--bytes", "9"],
        ["many", "bits-per-byte", "--bytes", "9"],
        ["1.0", "bits-per-byte"],
        ["1.0", "bits", "--bytes", "9"],
        ["0.5", "perplexity-per-word", "--words", "9"],
        ["nan", "bits-per-byte", "--bytes", "9"],
        ["1.0", "bits-per-byte", "--bytes", "0"],
        ["1.0", "bits-per-character", "--bytes", "9"],
        ["1.0", "bits-per-byte", "--bytes", "9", "--split", "test"],
        ["1.0", "bits-per-byte", "--bytes", "9", "--corpus", "stdlib"],
        ["1.0", "bits-per-byte", "--corpus", "enwik7"],
        ["1.0", "bits-per-byte", "--text", "nowhere.txt"],
        ["2.0", "perplexity-per-token", "--tokens", "-3"],
        ["1.0", "bits-per-byte", "--bytes", "10", "--lines", "30"],
    ],
)
def test_bad_requests(arguments, capsys):
    assert run(["convert", *arguments]) == 2
    assert capsys.readouterr().err.startswith("headcount: ")

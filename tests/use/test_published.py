"""The papers' tables: complete, every row valid, counted by our models, and runs that stand for rows."""

import json
import tomllib
from pathlib import Path

import pytest

from headcount.cli import run
from headcount.errors import RequestError
from headcount.models import MODELS
from headcount.recipe import from_dict, read, to_toml
from headcount.use import published, recipe_files
from headcount.use.published import rows, table
from tests.conftest import a_figure

WAYS = {"carried", "sliding", "whole-file", "adapting", "unstated"}
DATA = tomllib.loads((Path(published.__file__).parent / "published.toml").read_text())


def test_every_row_of_the_tables_is_there():
    found = {}
    for row in rows():
        found[row.source, row.corpus] = found.get((row.source, row.corpus), 0) + 1
    assert found == {
        ("Merity 2019, table 1", "enwik8"): 13,
        ("Dai et al. 2019, table 2", "enwik8"): 11,
        ("Dai et al. 2019, table 3", "text8"): 7,
        ("Dai et al. 2019, table 1", "wikitext-103"): 10,
        ("Al-Rfou et al. 2018, its enwik8 table", "enwik8"): 6,
        ("Al-Rfou et al. 2018, its text8 table", "text8"): 8,
    }
    assert published.corpora() == ("enwik8", "text8", "wikitext-103")


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.corpus}: {row.source}: {row.name}")
def test_every_row_is_valid(row):
    low, high = (15, 50) if row.corpus == "wikitext-103" else (0.9, 1.5)
    assert all(low < float(value) < high for value in (row.valid, row.test) if value)
    assert row.unit == ("perplexity per word" if row.corpus == "wikitext-103" else "bits per character")
    assert row.way in WAYS and row.protocol and 2016 <= row.year <= 2019
    assert row.kind is None or row.kind in MODELS
    assert bool(row.caveat) == ("Al-Rfou et al. 2018, " in row.source)
    if row.recipe:
        recipe = read(recipe_files.find(row.recipe))
        assert recipe.model["kind"] == row.kind
        if recipe.corpus.name == row.corpus:  # the same figures stand in the recipe
            assert recipe.published.test == float(row.test)
            assert recipe.published.valid == (float(row.valid) if row.valid else None)


def test_no_system_and_no_way_is_idle():
    used = {row["system"] for t in DATA["tables"] for row in t["rows"]}
    assert used == set(DATA["systems"])
    assert {row.way for row in rows()} == set(DATA["ways"]) == WAYS
    named = {row.recipe for row in rows() if row.recipe}
    assert named == {f"recipes/paper/{file.name}" for file in (recipe_files.folder() / "paper").glob("*.toml")}


def test_counted_beside_printed(tmp_path):
    entries = {
        (e.row.source, e.row.name): e for group in table("enwik8", [str(tmp_path)]).groups for e in group.entries
    }
    one_head = entries["Merity 2019, table 1", "4 layer SHA-LSTM (h = 1024, single attention head)"]
    assert (one_head.counted.in_training, one_head.counted.in_use) == (53_773_517, 51_674_317)
    assert (one_head.row.heads, one_head.counted.heads) == (1, 1) and one_head.ours == "not trained here"
    xl = entries["Merity 2019, table 1", "Transformer-XL (12 layer) (Dai et al., 2019)"]
    assert (xl.row.heads, xl.counted.heads, xl.counted.in_training) == (160, 96, 41_055_436)
    without_sizes = entries["Dai et al. 2019, table 2", "Ours – 18-layer Transformer-XL"]
    assert without_sizes.counted is None and without_sizes.ours == "no recipe"
    rhn = entries["Dai et al. 2019, table 2", "Zilly et al. (2016) – Recurrent highway networks"]
    assert rhn.ours == "not built yet" and rhn.row.formula == "45.99M"


def a_run(folder: Path, recipe: str, **changes: str) -> Path:
    tables = tomllib.loads(recipe_files.find(recipe).read_text())
    made = from_dict(tables, [f"{key.replace('_', '.', 1)}={value}" for key, value in changes.items()])
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(to_toml(made))
    return folder


def figure(split: str, value: float, size: int = 1_000, corpus: str = "enwik8", protocol=None, **more) -> str:
    made = a_figure(
        value=value,
        bytes=size,
        protocol={"name": "merity2019", **(protocol or {})},
        corpus={"name": corpus, "split": split, "sha256": "0" * 64},
        tokens="bytes",  # as it was once written
        **more,
    )
    return json.dumps(made) + "\n"


def test_points_of_a_curve_and_damaged_lines_are_no_figures_of_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    same = a_run(tmp_path / "same", "recipes/paper/sha_rnn_1head.toml", train_steps="9")
    point = figure("test", 7.77, 10**6, protocol={"name": "merity2019", "curve": "window"})
    whole = json.loads(figure("test", 1.4))
    bad = [{key: value for key, value in whole.items() if key != left_out} for left_out in whole]
    bad += [{**whole, "tokens": {"kind": "bytes"}}, {**whole, "value": "1.4"}, {**whole, "corpus": "enwik8"}]
    (same / "figures.jsonl").write_text(point + "".join(json.dumps(line) + "\n" for line in bad))
    assert run(["table", "enwik8", "--runs", str(same)]) == 0
    said = capsys.readouterr()
    assert "7.7700" not in said.out and "no figure yet" in said.out
    passed_over = f"{len(bad)} damaged lines of {same / 'figures.jsonl'} passed over"
    assert passed_over in said.err
    assert run(["compare", str(same)]) == 0
    assert passed_over in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"tokens": {"kind": "words", "scored": 10, "exact": True}, "nats": 31.0}, "perplexity 22.20 per word, 0.9500"),
        (
            {
                "tokens": {"kind": "bytes", "scored": 1_000, "exact": True},
                "corpus": {
                    "name": "wikitext-103",
                    "split": "test",
                    "sha256": "0" * 64,
                    "counts": {"bytes": 1_000, "words": 180, "lines": 10},
                },
            },
            "perplexity 32.00 per word, 0.9500",  # 950 bits over 190 words and <eos>
        ),
        ({}, "0.9500 bits per byte (merity2019"),  # of before there were counts
    ],
)
def test_on_wikitext_a_run_is_shown_in_the_unit_of_the_rows(tmp_path, capsys, more, shown):
    same = a_run(tmp_path / "same", "recipes/paper/transformer_xl_wikitext103_standard.toml", train_steps="9")
    made = {**json.loads(figure("test", 0.95, corpus="wikitext-103")), **more}
    (same / "figures.jsonl").write_text(json.dumps(made) + "\n")
    assert run(["table", "wikitext-103", "--runs", str(same)]) == 0
    said = flat(capsys)
    assert f"{same} {shown}" in said.replace("- ", "-") or shown in said
    assert ("per word," in said) == bool(more)


def test_a_run_stands_for_a_row_by_its_model_and_corpus(tmp_path, capsys):
    one_head = "recipes/paper/sha_rnn_1head.toml"
    same = a_run(tmp_path / "same", one_head, optimiser_lr="1e-3", train_steps="9")
    a_run(tmp_path / "narrow", one_head, model_width="512")
    a_run(tmp_path / "elsewhere", one_head, corpus_name="enwik9")
    a_run(tmp_path / "text8", "recipes/paper/char_transformer_t12.toml", corpus_name="text8")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "recipe.toml").write_text("[model\n")
    lines = [figure("valid", 1.5, 9_000), figure("test", 1.4), figure("test", 1.3, 900), figure("test", 9, 10**9, "x")]
    (same / "figures.jsonl").write_text("".join(lines))
    found = table("enwik8", [str(tmp_path)])
    standing = {e.row.name: e.runs for group in found.groups for e in group.entries if e.runs}
    assert list(standing) == ["4 layer SHA-LSTM (h = 1024, single attention head)"]
    ((only,),) = standing.values()
    assert (only.run, only.figure["value"], only.steps) == (str(same), 1.4, 9)
    (sentence,) = found.left_out
    assert "damaged is left out" in sentence
    (text8,) = [e.runs for g in table("text8", [str(tmp_path)]).groups for e in g.entries if e.row.name == "T12"]
    assert text8[0].figure is None
    assert run(["table", "enwik8", "--runs", str(tmp_path / "narrow"), str(same)]) == 0
    assert "1.4000 bits per byte (merity2019, test, 1,000 bytes, tokens bytes, step 7 of 9)" in flat(capsys)


def test_what_is_said_above_a_table_is_of_its_corpus(capsys):
    said = {}
    for corpus in published.corpora():
        assert run(["table", corpus]) == 0
        said[corpus] = flat(capsys)
    assert "drop newlines" in said["enwik8"] and "1.33 on enwik8" in said["enwik8"]
    assert "newlines" not in said["text8"] and "on enwik8" not in said["text8"]
    assert "newlines" not in said["wikitext-103"] and "bits per byte" not in said["wikitext-103"].split("==")[1]


def flat(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("corpus", ["enwik8", "text8", "wikitext-103"])
@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_print_within_the_terminal(corpus, width, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["table", corpus]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= width
    joined = " ".join(said.split())
    for row in rows():
        assert row.corpus != corpus or row.protocol.replace("\u00a0", " ") in joined
    assert joined.count("Headcount: ") == sum(row.corpus == corpus for row in rows())
    assert "not built yet" in joined and "not trained here" in joined


def test_as_json_every_row_has_its_way_and_what_is_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["table", "wikitext-103", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    entries = [entry for group in groups for entry in group["entries"]]
    assert len(entries) == 10 and all(e["row"]["way"] == g["way"] for g in groups for e in g["entries"])
    large = next(e for e in entries if e["row"]["name"].endswith("Large"))
    assert (large["row"]["test"], large["counted"]["in_use"], large["ours"]) == (18.3, 285_170_506, "not trained here")


def test_bad_requests(capsys):
    assert run(["table", "enwik7"]) == 2 and "did you mean 'enwik8'" in capsys.readouterr().err
    assert run(["table"]) == 2
    assert run(["table", "text8", "--runs", "nowhere"]) == 2 and "no such folder" in capsys.readouterr().err
    with pytest.raises(RequestError, match="no table"):
        table("lm1b")

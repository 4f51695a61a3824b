"""Bad requests (fault table, row 18): exit 2, one sentence, nothing created."""

import os

import pytest

from headcount.cli import run
from tests.conftest import make_text

BAD = [
    ["train"],
    ["train", "nowhere.txt"],
    ["train", "nowhere.toml"],
    ["train", "recipes/tiny/sha_rn.toml"],
    ["train", "empty"],
    ["train", "*.md"],
    ["train", "recipes/tiny/sha_rnn.toml", "my.txt"],
    ["train", "my.txt", "--set", "model.width=0"],
    ["train", "my.txt", "--set", "model.width=1e9"],
    ["train", "my.txt", "--set", "model.width=60000", "--set", "model.blocks=1000"],
    ["train", "my.txt", "--set", "model.widht=8"],
    ["train", "my.txt", "--set", "model.kind=gpt"],
    ["train", "my.txt", "--set", "model.kind=[1]"],
    ["train", "my.txt", "--set", "model.attention=[5]"],
    ["train", "my.txt", "--set", "model.attention=0"],
    ["train", "my.txt", "--set", "model.window=-1"],
    ["train", "my.txt", "--set", "model.dropout=1.0"],
    ["train", "my.txt", "--set", "model.dropout=nan"],
    ["train", "my.txt", "--set", "model.vocabulary=100"],
    ["train", "my.txt", "--set", "model.window_rule=segment", "--set", "model.window=32"],
    ["train", "my.txt", "--set", "optimiser.lr=-1"],
    ["train", "my.txt", "--set", "optimiser.lr=inf"],
    ["train", "my.txt", "--set", "optimiser.kind=sdg"],
    ["train", "my.txt", "--set", "schedule.kind=cosin"],
    ["train", "my.txt", "--set", "batches.streams=0"],
    ["train", "my.txt", "--set", "batches.segment=many"],
    ["train", "my.txt", "--set", "train.epochs=0"],
    ["train", "my.txt", "--set", "corpus.split=[0.5]"],
    ["train", "my.txt", "--set", "corpus.name=text9"],
    ["train", "my.txt", "--set", "corpus.sha256=abc"],
    ["train", "my.txt", "--set", "evaluate.protocol=best"],
    ["train", "my.txt", "--set", "tokens.kind=wrds"],
    ["train", "my.txt", "--set", "tokens.kind=words", "--set", "tokens.vocabulary=2"],
    ["train", "my.txt", "--set", "tokens.kind=wordpieces", "--set", "tokens.vocabulary=200"],
    ["train", "my.txt", "--set", "tokens.alphabet=text8"],
    ["train", "my.txt", "--set", "seed=-4"],
    ["train", "my.txt", "--set", "model.vocabulary=300"],
    ["train", "my.txt", "--set", "train.epochs=1e9"],
    ["train", "my.txt", "--set", "evaluate.protocol=merity2019", "--set", "model.window_rule=segment"],
    ["train", "my.txt", "--set", "evaluate.protocol=merity2019", "--set", "evaluate.limit=20"],
    ["train", "my.txt", "--device", "meta"],
    ["train", b"bad\xff.txt".decode(errors="surrogateescape")],
    ["train", "my.txt", "--set", "nonsense"],
    ["train", "my.txt", "--set", "modle.width=3"],
    ["train", "my.txt", "--steps", "0"],
    ["train", "my.txt", "--steps", "x"],
    ["train", "my.txt", "--steps", "5", "--minutes", "1"],
    ["train", "my.txt", "--minutes", "-1"],
    ["train", "my.txt", "--minutes", "nan"],
    ["train", "my.txt", "--minutes", "inf"],
    ["report", "full", "full"],
    ["train", "my.txt", "--device", "tpu9"],
    ["train", "my.txt", "--from", "nowhere"],
    ["train", "my.txt", "--run", "my.txt"],
    ["train", "my.txt", "--run", "full"],
    ["train", "my.txt", "--stepz", "3"],
    ["trian", "my.txt"],
    ["resume", "nowhere"],
    ["resume"],
    ["evaluate", "nowhere"],
    ["generate", "nowhere"],
    ["score", "nowhere", "my.txt"],
    ["info", "nowhere"],
    ["pack", "nowhere", "-o", "x"],
    ["corpus"],
    ["corpus", "--from", "my.txt"],
    ["corpus", "enwik7"],
    ["corpus", "my.txt", "--from", "my.txt"],
    ["corpus", "enwik8", "--from", "nowhere.gz"],
    ["corpus", "enwik8", "--dump", "my.txt"],
    ["corpus", "stdlib", "--text"],
    ["corpus", "wikipedia", "--text"],
    ["corpus", "wikipedia"],
    ["corpus", "wikipedia", "--dump", "nowhere.xml"],
    ["corpus", "wikipedia", "--dump", "my.txt", "--from", "my.txt"],
    ["corpus", "wikitext-2", "--from", "full"],
    ["corpus", "wikitext-2", "--from", "*.tokens"],
    ["corpus", "enwik8", "--from", "my.txt", "full"],
    ["corpus", "my.txt", "-o", "my.txt"],
]


@pytest.mark.parametrize("arguments", BAD, ids=lambda arguments: ascii(" ".join(arguments)))
def test_bad_requests_are_one_sentence_and_create_nothing(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_bytes(make_text(5_000))
    (tmp_path / os.fsdecode(b"bad\xff.txt")).write_bytes(make_text(5_000))
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    assert run([*arguments]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.startswith("headcount: ") and "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) <= 2
    names = sorted(os.fsencode(p.name) for p in tmp_path.rglob("*"))
    assert names == [b"bad\xff.txt", b"empty", b"full", b"my.txt", b"thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "my.txt", "--minutes", "inf"], "--minutes inf: must be a number above 0, and not without end"),
        (["train", "my.txt", "--set", "evaluate.protocol=sliding-0"], "S is a whole number from 1 to"),
        (["train", "my.txt", "--set", "evaluate.protocol=sliding"], "S is a whole number from 1 to"),
        (["corpus", "wikipedia", "--dump", "my.txt", "--from", "my.txt"], "name one of --dump and --from"),
        (["corpus", "wikitext-2", "--from", "*.tokens"], "*.tokens: nothing matches"),
        (["corpus", "enwik8", "--from", "my.txt", "odd"], "enwik8 is one file"),
        (["corpus"], "name a corpus (`headcount corpora`"),
        (["corpus", "--from", "my.txt", "elsewhere", "enwik8"], "enwik8 is one file"),
        (["corpus", "fifo"], "fifo is not a regular file; train, score, inspect and corpus take a pipe as -"),
        (["info", "odd"], "odd is not a run: its recipe.toml is not a file"),
        (["report", "odd", "./odd/"], "odd is named twice, once as ./odd/"),
        (["compare", "odd", "odd"], "odd is named twice"),
        (["evaluate", "odd", "../{here}/odd", "--curve", "context"], "odd is named twice, once as ../{here}/odd"),
    ],
)
def test_the_reason_is_the_right_one(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_bytes(make_text(5_000))
    (tmp_path / "odd" / "recipe.toml").mkdir(parents=True)
    os.mkfifo(tmp_path / "fifo")
    assert run([word.format(here=tmp_path.name) for word in arguments]) == 2
    told = capsys.readouterr().err
    assert said.format(here=tmp_path.name) in told and "did you mean" not in told
    if said.endswith(("twice", "file", "end", "odd", "/")):  # and nothing more
        assert told.endswith(said.format(here=tmp_path.name) + "\n")

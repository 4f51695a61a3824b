"""headcount corpus: what is prepared, what is said of it, and that what it says can be typed."""

import bz2
import gzip
import hashlib
import io
import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

from headcount.cli import run
from headcount.text import published, wikitext
from headcount.text.cache import cache_folder
from headcount.text.published import Published
from tests.conftest import make_text
from tests.text.dump_maker import dump, page


def test_a_text_of_ones_own(tmp_path, capsys):
    (tmp_path / "notes.txt.gz").write_bytes(gzip.compress(make_text(5_000)))
    assert run(["corpus", str(tmp_path / "notes.txt.gz")]) == 0
    said = capsys.readouterr()
    path = said.out.splitlines()[0]
    assert path.startswith(str(cache_folder())) and "5,000 bytes, sha256 " in said.out
    assert "train  4,500 bytes" in said.out and f"headcount train {shlex.quote(path)}" in said.err


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_what_is_piped_in(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    piped(monkeypatch, make_text(5_000))
    assert run(["corpus", "-", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == 5_000 and Path(facts["path"]).read_bytes() == make_text(5_000)
    piped(monkeypatch, make_text(5_000))
    assert run(["corpus", "--json", "-"]) == 0 and json.loads(capsys.readouterr().out) == facts
    content = make_text(6_000, seed=1)
    known = Published("https://nowhere", hashlib.md5(content, usedforsecurity=False).hexdigest())
    monkeypatch.setitem(published.FILES, "enwik9", known)
    piped(monkeypatch, content)
    assert run(["corpus", "enwik9", "--from", "-", "-o", "parts"]) == 0
    assert (tmp_path / "parts" / "valid.txt").stat().st_size == 300 and not (tmp_path / "-").exists()
    for option in ("--dump", "--from"):
        piped(monkeypatch, dump(page("Alone", make_text(9_000).decode())).encode())
        assert run(["corpus", "wikipedia", option, "-"]) == 0
        assert "1 articles" in capsys.readouterr().out
    assert run(["corpus", "wikipedia", "--dump", "-"]) == 2 and "standard input is empty" in capsys.readouterr().err


def test_several_files_and_globs_where_one_place_is_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = {split: make_text(2_000, seed=seed) for seed, split in enumerate(("train", "valid", "test"))}
    sha1 = tuple(hashlib.sha1(content, usedforsecurity=False).hexdigest() for content in parts.values())
    monkeypatch.setitem(wikitext.FORMS, "wikitext-2", wikitext.Form("w.zip", "0" * 64, "tokens", sha1))
    for split, content in parts.items():
        (tmp_path / f"wiki.{split}.tokens.gz").write_bytes(gzip.compress(content))
    files = [f"wiki.{split}.tokens.gz" for split in ("valid", "test", "train")]
    said = []
    for where in (["--from", *files], ["--from", "*.tokens.gz"], ["--from", files[0], "--from", "wiki.t*.gz"]):
        assert run(["corpus", "wikitext-2", *where, "--json"]) == 0, capsys.readouterr().err
        said.append(json.loads(capsys.readouterr().out))
        Path(said[0]["path"]).unlink()  # so that it is made again, of what is named now
    assert said[0]["parts"]["train"]["bytes"] == 2_000 and said[1:] == said[:2]
    (tmp_path / "w.xml").write_text(dump(page("Alone", make_text(9_000).decode())))
    for words in (["wikipedia", "--from", "*.xml"], ["--from", "*.xml", "wikipedia"]):  # the name first or last
        assert run(["corpus", *words]) == 0


def test_wikipedia_from_a_dump_to_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages = [page(f"T{i}", f"'''T{i}''' " + make_text(300, seed=i).decode()) for i in range(100)]
    (tmp_path / "w.xml.bz2").write_bytes(bz2.compress(dump(*pages).encode()))
    assert run(["corpus", "wikipedia", "--dump", "w.xml.bz2", "--text", "-o", "parts", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["form"] == "text" and sum(part["articles"] for part in facts["parts"].values()) == 100
    parts = [(tmp_path / "parts" / f"{split}.txt").read_bytes() for split in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [part["bytes"] for part in facts["parts"].values()]
    assert run(["corpus", "wikipedia", "--from", facts["path"]]) == 0
    command = next(line.strip() for line in capsys.readouterr().err.splitlines() if "headcount train" in line)
    arguments = shlex.split(command)[1:]
    small = ["--set", "model.width=8", "--set", "evaluate.limit=64", "--steps", "2"]
    assert run([*arguments[: arguments.index("--minutes")], *small, "--run", "run"]) == 0
    recipe = (tmp_path / "run" / "recipe.toml").read_text()
    assert 'name = "wikipedia"' in recipe and "split =" not in recipe
    assert run(["evaluate", "run", "--split", "test"]) == 0
    assert run(["resume", "run", "--steps", "3"]) == 0


def test_a_dump_of_one_article_becomes_parts_and_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.xml").write_text(dump(page("Alone", make_text(9_000).decode())))
    assert run(["corpus", "wikipedia", "--dump", "w.xml", "--text", "-o", "parts"]) == 0
    said = capsys.readouterr()
    assert "no title's hash falls into valid or test: the text of train is divided at ends of lines" in said.out
    assert all((tmp_path / "parts" / f"{split}.txt").stat().st_size > 300 for split in ("train", "valid", "test"))
    assert "divided" in json.loads((tmp_path / "parts" / "manifest.json").read_text())
    command = next(line.strip() for line in said.err.splitlines() if "headcount train" in line)
    arguments = shlex.split(command.replace("desk", "tiny"))[1:]
    small = ["--set", "model.width=8", "--set", "evaluate.limit=64", "--steps", "2"]
    assert run([*arguments[: arguments.index("--minutes")], *small, "--run", "run"]) == 0
    assert run(["evaluate", "run", "--split", "test"]) == 0


def test_no_command_is_shown_that_would_be_refused(tmp_path, capsys):
    (tmp_path / "tiny.txt").write_bytes(b"abc")
    assert run(["corpus", str(tmp_path / "tiny.txt")]) == 0
    said = capsys.readouterr().err
    assert "headcount train" not in said and "has 3 bytes: at least 1024 are needed" in said


def test_folders_globs_and_archives_just_train(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    for i in range(3):
        (tmp_path / "texts" / f"{i}.txt").write_bytes(make_text(2_000, seed=i))
    (tmp_path / "notes.txt.gz").write_bytes(gzip.compress(make_text(4_000)))
    small = ["--set", "model.width=8", "--set", "evaluate.limit=64", "--steps", "2"]
    for text, name in (("texts", "texts"), ("texts/*.txt", "texts-2"), ("notes.txt.gz", "notes")):
        assert run(["train", text, *small]) == 0, capsys.readouterr().err
        assert (tmp_path / "runs" / name / "best.json").exists()
    assert run(["resume", "runs/texts-2", "--steps", "3"]) == 0
    assert run(["evaluate", "runs/notes", "--text", "notes.txt.gz", "--limit", "100"]) == 0
    assert run(["score", "runs/notes", "notes.txt.gz", "--json"]) == 0


def test_what_is_there_is_said(capsys):
    assert run(["corpora"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["stdlib"].startswith("here") and lines["wikitext-103"].startswith("not yet")
    assert lines["wikipedia"].startswith("not yet")

"""headcount claims and headcount claim: the list, the verdict, the JSON, and what is refused."""

import json

import pytest

from headcount.claims import CLAIMS, tokenisation
from headcount.cli import run
from tests.claims.test_tokenisation import SMALL, closed_text

SETTINGS = [part for setting in SMALL for part in ("--set", setting)]


def test_the_list(capsys):
    assert run(["claims"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CLAIMS) and "Merity 2019" in lines[0]
    assert run(["claims", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == set(CLAIMS) and found["tokenisation"]["tested"]


def test_a_claim_is_tested_and_gone_on_with(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tokenizers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tokenisation, "MOST_WORDS", 3)
    (tmp_path / "my.txt").write_bytes(closed_text())
    command = ["claim", "tokenisation", "--text", "my.txt", "--bytes", "1280", *SETTINGS]
    assert run(command) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Of the paper's worry") and "runs/claim-tokenisation/claim.html" in said.err
    folder = tmp_path / "runs" / "claim-tokenisation"
    assert (folder / "claim.html").exists() and (folder / "words-equal-seconds" / "best.json").exists()
    assert run([*command, "--json"]) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == json.loads((folder / "claim.json").read_text())
    assert json.loads(again.out)["verdict"] == said.out.strip() and "steps (equal" not in again.err
    assert run([*command, "--minutes", "1"]) == 2
    assert run(["claim", "tokenisation", "--text", "my.txt", "--bytes", "99", *SETTINGS]) == 2
    assert "holds this claim with another bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["tokenization", "--text", "my.txt"], "did you mean 'tokenisation'"),
        (["tokenisation"], "--text"),
        (["tokenisation", "--text", "my.txt", "--corpus", "text8"], "--text"),
        (["tokenisation", "--text", "missing.txt"], "missing.txt"),
        (["tokenisation", "--corpus", "nowhere"], "nowhere"),
        (["tokenisation", "--text", "my.txt", "--minutes", "-1"], "--minutes"),
        (["tokenisation", "--text", "my.txt", "--set", "tokens.kind=words"], "tokens"),
        (["tokenisation", "--text", "my.txt", "--set", "model.widht=3"], "width"),
        (["tokenisation", "--text", "my.txt", "--bytes", "1000", "--set", "model.widht=3"], "width"),
        (["tokenisation", "--text", "my.txt", "--bytes", "1000", "--set", "model.vocabulary=300"], "model.vocabulary"),
        (["tokenisation", "--text", "my.txt", "--bytes", "1000", "--set", "model.kind=transformer-xl"], "sha-rnn"),
        (["tokenisation", "--text", "my.txt", "--bytes", "1000", "--set", "evaluate.protocol=nothing"], "protocol"),
        (["tokenisation", "--text", "my.txt", "--bytes", "1000", "--device", "foo"], "--device foo"),
    ],
)
def test_what_is_refused_makes_nothing(tmp_path, monkeypatch, capsys, arguments, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_bytes(closed_text())
    assert run(["claim", *arguments]) == 2
    said = capsys.readouterr().err
    assert reason in said and "steps (equal" not in said and not (tmp_path / "runs").exists()

"""What may be ranked in one column, and what may not."""

import json

import pytest

from headcount.cli import run
from headcount.errors import RequestError
from headcount.use.compare import compare

SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256", "--steps"]


@pytest.fixture
def runs(tmp_path, text_file, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, steps in (("short", "2"), ("long", "30")):
        assert run(["train", str(text_file), "--run", name, *SMALL, steps]) == 0
    return tmp_path


def test_runs_on_the_same_bytes_are_ranked(runs):
    (group,) = compare(["short", "long"])
    assert group.differs == "" and [row.run for row in group.rows] == ["long", "short"]
    best = group.rows[0]
    assert best.value < group.rows[1].value
    assert (
        30_000 < best.bytes_seen <= 30 * 8 * 128 and best.seconds > 0 and best.speed == best.bytes_seen / best.seconds
    )
    assert best.memory > 10_000_000 and best.flops > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"corpus": {"name": "x", "split": "valid", "sha256": "f" * 64, "bytes": 256}}, "other bytes were scored"),
        ({"bytes": 255}, "divided by"),
        ({"protocol": {"adapts": True}}, "adapts"),
        ({"unit": "bits per character"}, "in bits per"),
    ],
)
def test_what_differs_is_not_ranked_and_says_in_what(runs, change, reason):
    file = runs / "short" / "figures.jsonl"
    figure = json.loads(file.read_text())
    for key, value in change.items():
        figure[key] = {**figure[key], **value} if key == "protocol" else value
    file.write_text(json.dumps(figure) + "\n")
    first, second = compare(["short", "long"])
    assert len(first.rows) == len(second.rows) == 1
    assert reason in second.differs


def test_streams_and_window_do_not_forbid_a_comparison_and_are_shown(runs, capsys):
    capsys.readouterr()
    assert run(["evaluate", "short", "--limit", "256", "--window", "16"]) == 0
    assert len(compare(["short", "long"])) == 1
    assert run(["compare", "short", "long"]) == 0
    said = capsys.readouterr()
    assert "carried, 1 stream, window 16" in said.out and "carried, 1 stream, window 256" in said.out
    assert "compare.html" in said.err and (runs / "compare.html").exists()


def test_a_run_without_a_figure_and_a_run_named_twice(runs, capsys):
    (runs / "long" / "figures.jsonl").unlink()
    ranked, without = compare(["short", "long"])
    assert [row.run for row in ranked.rows] == ["short"] and without.rows[0].figure is None
    assert without.differs == "no figure was measured"
    for again in ("short", "short/", "../" + runs.name + "/short", str(runs / "short")):
        with pytest.raises(RequestError, match="twice"):
            compare(["short", again])
    capsys.readouterr()
    assert run(["compare", "short", "nowhere"]) == 2
    assert run(["compare"]) == 2
    assert run(["compare", "short", "long", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)
    assert groups[0]["rows"][0]["figure"]["value"] > 0
    (group,) = compare(["long"])
    assert group.differs == "no figure was measured"

"""What may be ranked in one column, and what may not."""

import json
import re

import pytest

from headcount.cli import run
from headcount.errors import RequestError
from headcount.learn.run import Run
from headcount.show.compared import cells
from headcount.use.compare import compare
from tests.conftest import a_figure, make_text

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
    (runs / "other.txt").write_bytes(make_text(300))
    for asked in (["short", "--window", "16"], ["long"]):
        (runs / asked[0] / "figures.jsonl").unlink()
        assert run(["evaluate", *asked, "--text", "other.txt"]) == 0
    capsys.readouterr()
    assert len(compare(["short", "long"])) == 1
    assert run(["compare", "short", "long"]) == 0
    said = capsys.readouterr()
    assert "carried, 1 stream, window 16" in said.out and "carried, 1 stream, window 256" in said.out
    assert "compare.html" in said.err and (runs / "compare.html").exists()


def test_a_run_stands_there_with_its_own_figure_not_with_the_newest(runs):
    """An ablation that is measured later, by window, clamp or checkpoint, does not rank the run."""
    own = Run("long").own_figure()
    for asked in (["--window", "2"], ["--segment", "64", "--window", "2"], ["--checkpoint", "27"]):
        assert run(["evaluate", "long", "--limit", "256", *asked]) == 0
    (group,) = compare(["short", "long"])
    assert next(row for row in group.rows if row.run == "long").figure == own == Run("long").own_figure()


def test_where_there_is_no_own_figure_the_best_as_the_recipe_measures_counts(runs):
    (runs / "other.txt").write_bytes(make_text(300))
    values = {}
    for name, asked in (("first", ["--checkpoint", "27"]), ("best", []), ("window", ["--window", "2"])):
        for source in ("long", "short") if name == "best" else ("long",):
            assert run(["evaluate", source, "--text", "other.txt", *asked]) == 0
        values[name] = Run("long").figures()[-1]["value"]
    for source in ("long", "short"):  # only what was measured on the other text
        file = runs / source / "figures.jsonl"
        file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "other.txt" in line))
    (group,) = compare(["short", "long"])
    assert group.rows[0].value == values["best"] < values["first"]
    assert group.rows[0].figure["protocol"]["window"] == 256


def test_bytes_and_seconds_are_those_of_the_step_that_was_measured(runs, capsys):
    (last,) = compare(["long"])[0].rows
    (runs / "long" / "figures.jsonl").unlink()
    assert run(["evaluate", "long", "--limit", "256", "--checkpoint", "27"]) == 0
    (row,) = compare(["long"])[0].rows
    steps = [e for e in Run("long").events() if e["event"] == "step"]
    assert (row.step, row.last_step) == (27, 30) and last.step == 30
    assert (row.bytes_seen, row.seconds) == (steps[26]["bytes"], steps[26]["seconds"])
    assert row.bytes_seen < last.bytes_seen == steps[29]["bytes"]
    capsys.readouterr()
    assert run(["compare", "long"]) == 0
    assert "step 27 of 30, carried" in capsys.readouterr().out
    assert "step 27 of 30, carried" in (runs / "compare.html").read_text()


def test_windows_that_overlap_cost_what_they_recompute(runs, capsys):
    (once,) = compare(["long"])[0].rows
    (runs / "long" / "figures.jsonl").unlink()
    assert run(["evaluate", "long", "--limit", "256", "--protocol", "sliding-16", "--window", "64"]) == 0
    (row,) = compare(["long"])[0].rows
    assert row.flops == 4 * once.flops
    assert run(["compare", "long"]) == 0
    assert "window / stride" in capsys.readouterr().out and "window / stride" in (runs / "compare.html").read_text()


def altered(folder, **changes):
    """The run with a figure that differs in some keys."""
    file = folder / "figures.jsonl"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes) + "\n")


def test_of_equal_groups_the_lossless_one_is_first_and_each_difference_is_said_once(runs, capsys):
    lossy = {"unit": "bits per byte, not lossless", "bytes": 300, "value": 0.1}
    altered(runs / "short", **lossy, tokens={"kind": "words", "scored": 50, "exact": False})
    first, second = compare(["short", "long"])
    assert [first.rows[0].run, second.rows[0].run] == ["long", "short"]
    assert not first.differs and "lossless" not in first.measured_on
    capsys.readouterr()
    assert run(["compare", "short", "long"]) == 0
    said, made = capsys.readouterr().out, (runs / "compare.html").read_text()
    assert said.count("not lossless") == said.count("restored") == 1
    headings = ["Alone: nothing to rank it with", "Not comparable with the first"]
    assert re.findall("<h2>([^<]*)</h2>", made) == [*headings, "Learning"]
    for title in headings:
        assert title in said
    assert made.count("Measured on") == 2 and "Divided by 300 bytes, not 256; not lossless: the text cannot" in made


def test_other_bytes_are_said_once(runs):
    altered(runs / "short", corpus={"name": "x", "split": "test", "sha256": "f" * 64, "bytes": 99}, bytes=99)
    (group,) = (group for group in compare(["short", "long"]) if group.differs)
    assert group.differs == "other bytes were scored"


def test_a_short_training_took_some_time(runs, capsys):
    file = runs / "long" / "metrics.jsonl"
    events = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(e | ({"seconds": 0.44} if "seconds" in e else {})) + "\n" for e in events))
    (group,) = compare(["long"])
    assert cells(group.rows[0])[4] == "0.4"


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


def test_the_largest_group_is_first_and_points_of_a_curve_rank_nobody(runs, text_file):
    assert run(["train", str(text_file), "--run", "third", *SMALL, "3"]) == 0
    altered(runs / "third", corpus={"name": "x", "split": "test", "sha256": "f" * 64, "bytes": 999}, bytes=999)
    point = a_figure(protocol={"curve": "window"}, corpus=Run("long").own_figure()["corpus"], bytes=256, value=0.01)
    with (runs / "third" / "figures.jsonl").open("a") as file:
        file.write(json.dumps(point) + "\n")
    first, second = compare(["third", "short", "long"])
    assert [row.run for row in first.rows] == ["long", "short"] and [row.run for row in second.rows] == ["third"]


def test_a_token_that_stands_for_more_bytes_costs_less_a_byte(runs):
    (whole,) = compare(["long"])[0].rows
    altered(runs / "long", tokens={"kind": "bytes", "vocabulary": 256, "scored": 64, "exact": True})
    (row,) = compare(["long"])[0].rows
    assert row.flops == round(whole.flops / 4)


def test_what_a_damaged_log_has_lost_is_unknown_and_said(runs, capsys):
    log = runs / "long" / "metrics.jsonl"
    lost = len(log.read_text().splitlines())
    log.write_text("?\n" * lost)
    assert run(["compare", "long"]) == 0
    said = capsys.readouterr()
    assert f"{lost} damaged lines of long/metrics.jsonl passed over" in said.err
    (row,) = compare(["long"])[0].rows
    assert cells(row)[3:6] == ["unknown"] * 3 and (row.step, row.last_step) == (30, 30)
    for again in (["report", "long"], ["resume", "long"]):
        log.write_text("?\n" * lost)
        assert run(again) == 0
        assert f"{lost} damaged lines of long/metrics.jsonl passed over" in capsys.readouterr().err

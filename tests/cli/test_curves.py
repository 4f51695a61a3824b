"""evaluate --curve, recl and probe on small runs: tables, JSON, pages, and what is refused."""

import json
import shutil

import numpy as np
import pytest

from headcount import load
from headcount.cli import run
from headcount.measure.context import fixed_positions, nats_by_context
from headcount.text.corpora import file_sha256
from tests.conftest import make_text
from tests.show.test_pages import assert_self_contained

SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256"]
FEW = ["--positions", "30", "--most", "16"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two runs on one text, and one that says it was trained on another."""
    folder = tmp_path_factory.mktemp("curves")
    for number, name in enumerate(("my.txt", "other.txt")):
        (folder / name).write_bytes(make_text(20_000, seed=number))
    for name, steps in (("one", "3"), ("two", "6")):
        assert run(["train", str(folder / "my.txt"), "--run", str(folder / name), *SMALL, "--steps", steps]) == 0
    shutil.copytree(folder / "one", folder / "elsewhere")
    recipe = (folder / "elsewhere" / "recipe.toml").read_text().replace("my.txt", "other.txt")
    hashes = (file_sha256(folder / name) for name in ("my.txt", "other.txt"))
    (folder / "elsewhere" / "recipe.toml").write_text(recipe.replace(*hashes))
    return folder


@pytest.fixture(scope="module")
def restarting(trained):
    """A character Transformer with a context of 8 on the same text, evaluated by windows 4 bytes apart."""
    settings = ["corpus.path=" + str(trained / "my.txt"), "model.width=8", "model.heads=2", "model.inner=8"]
    settings += ["model.context=8", "batches.segment=8", "evaluate.protocol=sliding-4", "evaluate.limit=256"]
    given = [part for setting in settings for part in ("--set", setting)]
    recipe = "recipes/tiny/char_transformer.toml"
    assert run(["train", recipe, *given, "--run", str(trained / "anew"), "--steps", "3"]) == 0
    return str(trained / "anew")


@pytest.fixture
def runs(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return str(trained / "one"), str(trained / "two")


def test_the_curve_by_context(trained, runs, tmp_path, capsys):
    assert run(["evaluate", *runs, "--curve", "context", *FEW]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert "30 positions of text valid, 4,000 bytes" in lines[0] and "exactly" in lines[0]
    assert lines[2].split()[0] == "context" and [line.split()[0] for line in lines[3:8]] == ["1", "2", "4", "8", "16"]
    assert "context.html" in said.err
    page = (tmp_path / "context.html").read_text()
    assert_self_contained(page)
    assert page.count("<polyline") == 2 and page.count("<circle") == 10 and "context in bytes" in page
    assert run(["evaluate", *runs, "--curve", "context", *FEW, "--json", "-o", "named.html"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["places"] == [1, 2, 4, 8, 16] and (tmp_path / "named.html").exists()
    for path, curve in zip(runs, found["runs"], strict=True):
        lm = load(path)
        _, _, text = lm.source(None, "valid")
        places = fixed_positions(4_000, 16, 30)
        assert curve["run"] == path and curve["positions"] == places.tolist()
        expected = nats_by_context(lm.model, text, places, (1, 2, 4, 8, 16))
        assert np.allclose(curve["nats"], expected, atol=1e-6)
        assert np.allclose(curve["values"], expected.mean(axis=1) / np.log(2), atol=1e-6)
        assert all(f"{value:.4f}" in said.out for value in curve["values"])
        assert curve["errors"][0] == pytest.approx(expected[0].std() / np.log(2) / 30**0.5, rel=1e-4)


def test_one_position_has_no_error_and_one_context_still_has_a_page(runs, tmp_path, capsys):
    assert run(["evaluate", *runs, "--curve", "context", "--most", "1", "--positions", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("bits per byte by context · 1 position of ") and "±" not in printed
    page = (tmp_path / "context.html").read_text()
    assert_self_contained(page)
    assert page.count("<circle") == 2 and "standard errors" not in page and "nan" not in page
    assert run(["evaluate", *runs, "--curve", "context", "--most", "1", "--positions", "1", "--json"]) == 0
    assert all("errors" not in one for one in json.loads(capsys.readouterr().out)["runs"])


def test_the_curve_by_window(runs, tmp_path, capsys):
    assert run(["evaluate", *runs, "--curve", "window", "--most", "512", "--limit", "300"]) == 0
    printed = capsys.readouterr().out
    assert f"{runs[0]} has this window of its own: 256" in printed and "; on text valid, 300 bytes" in printed
    assert "outside" not in printed
    assert "by window · carried: 1 stream, segments of 512, state carried; on" in printed
    page = (tmp_path / "window.html").read_text()
    assert_self_contained(page)
    assert page.count("<polyline") == 2 and page.count('class="mark') == 2
    for window in (1, 512):
        assert run(["evaluate", runs[1], "--window", str(window), "--limit", "300", "--json"]) == 0
        assert f"{json.loads(capsys.readouterr().out)['value']:.4f}" in printed
    assert run(["evaluate", runs[0], "--curve", "window", "--most", "2", "--limit", "100"]) == 0
    assert f"{runs[0]} has this window of its own: 256 (outside this curve)" in capsys.readouterr().out
    assert run(["evaluate", runs[0], "--curve", "window", "--most", "3", "--limit", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["places"] == [1, 2, 3] and found["runs"][0]["figures"][2]["protocol"]["window"] == 3


def test_the_curve_by_window_says_how_each_run_was_measured_and_where_one_begins_anew(
    trained, restarting, runs, capsys
):
    text = ["--text", str(trained / "my.txt"), "--limit", "100"]
    curve = ["evaluate", runs[0], restarting, "--curve", "window", "--most", "16", *text]
    assert run([*curve, "--protocol", "carried", "--segment", "7"]) == 0
    printed = capsys.readouterr().out
    assert f"{runs[0]} by carried: 1 stream, segments of 7, state carried; {restarting} by " in printed
    assert "state carried, restarts after 8; on my.txt" in printed
    assert f"{restarting} has this window of its own: 8" in printed


def test_windows_shorter_than_the_stride_are_refused_with_a_way_out(restarting, runs, tmp_path, capsys):
    curve = ["evaluate", restarting, "--curve", "window", "--most", "8", "--limit", "100"]
    assert run(curve) == 2
    assert f"{restarting}: protocol sliding-4: a window of 1 is shorter" in (said := capsys.readouterr().err)
    assert "--protocol carried" in said and not list(tmp_path.iterdir())
    assert run([*curve, "--protocol", "carried", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["places"] == [1, 2, 4, 8]


def test_effective_lengths(runs, capsys):
    grid = ["--start", "4", "--step", "4", "--most", "16", "--positions", "40"]
    assert run(["recl", *runs, *grid]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "from 4 in steps of 4 up to 16" in lines[0] and "0.01" in lines[0] and "40 positions of text" in lines[0]
    assert lines[2].split() == ["run", "r", "=", "0.1", "r", "=", "0.5", "r", "=", "1"] and lines[3].startswith(runs[0])
    assert run(["recl", *runs, *grid, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["start"], found["step"], found["most"], found["threshold"]) == (4, 4, 16, 0.01)
    for path in runs:
        assert set(found["runs"][path]) == {"0.1", "0.5", "1"}
        assert all(one["context"] in (4, 8, 12, 16) for one in found["runs"][path].values())


def test_a_run_that_begins_anew_has_no_more_than_it_holds(trained, restarting, runs, capsys):
    grid = ["--start", "10", "--step", "4", "--most", "20", "--positions", "40", "--text", str(trained / "my.txt")]
    assert run(["recl", runs[0], restarting, *grid]) == 0
    printed = capsys.readouterr().out
    assert f"\n{restarting} begins a new window after so many bytes" in printed and printed.endswith(": 8\n")
    assert f"\n{runs[0]} begins" not in printed
    assert run(["recl", restarting, runs[0], *grid, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["restart"] == {restarting: 8}
    assert {(one["context"], one["open"]) for one in found["runs"][restarting].values()} == {(8, False)}
    assert all(one["context"] >= 10 for one in found["runs"][runs[0]].values())


def test_the_probe(runs, tmp_path, capsys):
    assert run(["probe", "copy", *runs, "--most", "64", "--trials", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "5 random words of 10 letters" in lines[0] and [line.split()[0] for line in lines[3:6]] == ["16", "32", "64"]
    page = (tmp_path / "distance.html").read_text()
    assert_self_contained(page)
    assert page.count("<polyline") == 2 and "bits per byte gained" in page
    assert run(["probe", "copy", runs[0], "--trials", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["places"] == [16, 32, 64, 128, 256, 512, 1_024]
    one = found["runs"][0]
    assert np.allclose(np.subtract(one["without"], one["with"]), one["values"])


def test_a_packed_model_needs_a_text_and_takes_it(trained, runs, tmp_path, capsys):
    assert run(["pack", runs[0], "-o", "packed"]) == 0
    assert run(["evaluate", "packed", "--curve", "context", *FEW]) == 2
    assert "--text" in capsys.readouterr().err
    text = ["--text", str(trained / "other.txt")]
    assert run(["evaluate", "packed", str(trained / "elsewhere"), "--curve", "context", *FEW, *text, "--json"]) == 0
    one, other = json.loads(capsys.readouterr().out)["runs"]
    assert one["values"] == other["values"]


def test_runs_on_other_bytes_are_not_put_together(trained, runs, capsys):
    elsewhere = str(trained / "elsewhere")
    both = [runs[0], elsewhere]
    for arguments in (
        ["evaluate", *both, "--curve", "context"],
        ["evaluate", *both, "--curve", "window"],
        ["recl", *both],
        ["probe", "copy", *both],
    ):
        assert run(arguments) == 2, arguments
        assert "other bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate"],
        ["evaluate", "ONE", "TWO"],
        ["evaluate", "ONE", "--most", "5"],
        ["evaluate", "ONE", "--positions", "5"],
        ["evaluate", "ONE", "-o", "x.html"],
        ["evaluate", "--curve", "context"],
        ["evaluate", "ONE", "ONE", "--curve", "context"],
        ["evaluate", "ONE", "--curve", "length"],
        ["evaluate", "ONE", "--curve", "context", "--window", "5"],
        ["evaluate", "ONE", "--curve", "context", "--protocol", "carried"],
        ["evaluate", "ONE", "--curve", "context", "--most", "4000"],
        ["evaluate", "ONE", "--curve", "context", "--positions", "4000"],
        ["evaluate", "ONE", "--curve", "context", "--limit", "0"],
        ["evaluate", "ONE", "--curve", "context", "--limit", "1"],
        ["evaluate", "ONE", "--curve", "window", "--window", "5"],
        ["evaluate", "ONE", "--curve", "window", "--positions", "5"],
        ["evaluate", "ONE", "--curve", "window", "--most", "0"],
        ["evaluate", "ONE", "--curve", "window", "--clamp", "5"],
        ["recl"],
        ["recl", "ONE", "--start", "0"],
        ["recl", "ONE", "--step", "-5"],
        ["recl", "ONE", "--start", "2000", "--step", "2000"],
        ["probe", "copy"],
        ["probe", "paste", "ONE"],
        ["probe", "copy", "ONE", "--trials", "0"],
        ["probe", "copy", "ONE", "--most", "15"],
        ["probe", "copy", "ONE", "--most", "4096"],
    ],
)
def test_what_is_refused(arguments, runs, tmp_path, capsys):
    names = {"ONE": runs[0], "TWO": runs[1]}
    assert run([names.get(argument, argument) for argument in arguments]) == 2
    said = capsys.readouterr()
    assert not said.out and "headcount: " in said.err and not list(tmp_path.iterdir())

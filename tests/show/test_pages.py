"""The pages: self-contained, escaped, and showing what the files say."""

import html
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.cli import run
from headcount.models.contract import Part
from headcount.show import heat
from headcount.show.architecture import drawing
from headcount.show.curves import curves
from headcount.show.page import ASSETS, Section, page, table
from headcount.show.plots import Line, Mark, line_chart, ticks


def data_of(made):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.DOTALL)[1])


def assert_self_contained(made):
    """Nothing is fetched: no address outside of what namespaces are called, no source, no style sheet, no import."""
    without_namespace = made.replace("http://www.w3.org/2000/svg", "")
    outside_text = re.sub(
        r'<script type="application/json".*?</script>|<div class="text.*?</div>', "", without_namespace
    )
    assert not re.search(r"https?://|<link|<img| src=|@import|url\(", outside_text)
    assert made.startswith("<!doctype html>") and made.rstrip().endswith("</html>")


def test_train_ends_with_the_report_and_it_shows_the_run(trained, capsys):
    made = (trained / "one" / "report.html").read_text()
    assert_self_contained(made)
    figure = json.loads((trained / "one" / "figures.jsonl").read_text().splitlines()[0])
    assert f"{figure['value']:.4f}" in made and "carried" in made and html.escape(figure["command"]) in made
    data = data_of(made)
    assert [s["step"] for s in data["samples"][0]] == [2, 4, 6]
    sampled = [json.loads(line) for line in (trained / "one" / "metrics.jsonl").read_text().splitlines()]
    assert [s["text"] for s in data["samples"][0]] == [e["text"] for e in sampled if e["event"] == "sampled"]
    evaluated = {e["step"]: f"{e['bits_per_byte']:.4f} bits per byte" for e in sampled if e["event"] == "evaluated"}
    assert [s["measured"] for s in data["samples"][0]] == [evaluated[step] for step in (2, 4, 6)]
    (expected,) = data["expected"]
    assert len(expected["bytes"]) == len(expected["bits"]) == len(expected["candidates"])
    assert all(len(row) == 10 for row in expected["candidates"])
    for name in (
        "letters",
        "markup",
        "first letter of a word",
        "LSTM",
        "Boom",
        "attention",
        "cpu capability",
        "streams",
    ):
        assert name in made, name
    assert run(["report", str(trained / "one")]) == 0
    assert capsys.readouterr().out.strip() == str(trained / "one" / "report.html")


def test_candidates_are_probabilities_and_the_bits_are_the_scores(trained):
    from headcount import load

    (expected,) = data_of((trained / "one" / "report.html").read_text())["expected"]
    bits = load(trained / "one").score(bytes(expected["bytes"]))
    assert np.allclose(expected["bits"], bits, atol=0.006)
    for byte, cost, row in zip(expected["bytes"], expected["bits"], expected["candidates"], strict=True):
        assert sum(mille for _, mille in row) <= 1000.5
        found = dict(map(tuple, row)).get(byte)
        if found is not None:
            assert found == pytest.approx(1000 * 2**-cost, rel=0.02, abs=0.1)


def test_several_runs_on_one_page(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["report", str(trained / "one"), str(trained / "two")]) == 0
    made = (tmp_path / "report.html").read_text()
    assert_self_contained(made)
    assert made.count('class="figure"') == 2 and len(data_of(made)["samples"]) == 2
    assert f"{trained / 'two'}: validation" in made


def test_a_run_that_has_only_begun_or_lost_its_corpus_still_has_a_report(trained, tmp_path, capsys):
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "recipe.toml").write_text((trained / "one" / "recipe.toml").read_text())
    assert run(["report", str(begun)]) == 0
    made = (begun / "report.html").read_text()
    assert "No figure yet" in made and "operations per byte" in made
    words = (begun / "recipe.toml").read_text().replace('kind = "bytes"', 'kind = "words"')
    (begun / "recipe.toml").write_text(words)
    assert run(["report", str(begun)]) == 0
    assert "operations per token" in (begun / "report.html").read_text()
    recipe = (trained / "two" / "recipe.toml").read_text()
    (trained / "two" / "recipe.toml").write_text(recipe.replace("my.txt", "gone.txt"))
    assert run(["report", str(trained / "two"), "-o", str(tmp_path / "r.html")]) == 0
    assert "The corpus is not at hand" in (tmp_path / "r.html").read_text()
    (trained / "two" / "recipe.toml").write_text(recipe)
    assert run(["report"]) == 2 and run(["report", str(tmp_path / "nowhere")]) == 2


def test_score_as_a_page(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_bytes(b"</script><script>alert(1)</script> \xff\x00 &amp; caf\xc3\xa9\n")
    one, two = str(trained / "one"), str(trained / "two")
    assert run(["score", one, "t.txt", "--html"]) == 0  # into a pipe
    made = capsys.readouterr().out
    assert_self_contained(made)
    assert "<script>alert" not in made and "\\xff" in made and "é" in made
    assert run(["score", one, "t.txt", "--html", "--against", two, "-o", "d.html"]) == 0
    assert capsys.readouterr().out == "d.html\n"
    assert_self_contained((tmp_path / "d.html").read_text())
    for wrong in (["--html", "--json"], ["--against", two], ["-o", "x.html"]):
        assert run(["score", one, "t.txt", *wrong]) == 2
    (tmp_path / "long.txt").write_bytes(b"a" * 50_001)
    assert run(["score", one, "long.txt", "--html"]) == 2
    assert "at most 50,000" in capsys.readouterr().err


def test_inspect_writes_its_pages(trained, tmp_path, capsys):
    one, text = str(trained / "one"), str(trained / "my.txt")
    for what in ("attention", "neurons"):
        assert run(["inspect", what, one, text, "--limit", "300"]) == 0
        assert capsys.readouterr().out.strip() == str(trained / "one" / f"{what}.html")
        assert_self_contained((trained / "one" / f"{what}.html").read_text())
    looked = data_of((trained / "one" / "attention.html").read_text())["heads"][0]["places"]
    assert len(looked) == 300 and len(looked[100]) == 2 * 24  # distance and weight, one after the other
    packed = str(tmp_path / "packed")
    assert run(["pack", one, "-o", packed]) == 0
    assert run(["inspect", "attention", packed, text, "--limit", "50", "-o", str(tmp_path / "a.html")]) == 0
    assert run(["inspect", "dreams", one, text]) == 2
    assert run(["inspect", "attention", one, text, "--limit", "0"]) == 2


def test_a_text_in_which_no_unit_follows_anything_is_a_sentence(trained, tmp_path, capsys):
    (tmp_path / "one").write_bytes(b"x")
    made = tmp_path / "n.html"
    assert run(["inspect", "neurons", str(trained / "one"), str(tmp_path / "one"), "-o", str(made)]) == 0
    assert "No unit follows anything here" in made.read_text() and "<select" not in made.read_text()
    assert ">1 byte<" in made.read_text()


def test_features_that_a_text_does_not_have_are_named(trained, tmp_path, capsys):
    text, made = tmp_path / "t.txt", tmp_path / "n.html"
    for content, missing in (
        (b"some words (and brackets) here\n" * 9, "in quotes, digit"),
        ((trained / "my.txt").read_bytes()[:400], None),
    ):
        text.write_bytes(content)
        assert run(["inspect", "neurons", str(trained / "one"), str(text), "-o", str(made)]) == 0
        said = re.search(r"Not in this text, or everywhere in it: ([^.]*)\.", made.read_text())
        assert (said and said[1]) == missing
        assert ">block 0<" in made.read_text() and "layer" not in re.sub(
            "<style>.*?</style>", "", made.read_text(), flags=re.DOTALL
        )


def test_the_report_of_words_looks_back_over_tokens(trained, tmp_path, capsys):
    begun = tmp_path / "begun"
    begun.mkdir()
    recipe = (trained / "one" / "recipe.toml").read_text()
    for kind, unit in (("bytes", "bytes"), ("words", "tokens")):
        (begun / "recipe.toml").write_text(recipe.replace('kind = "bytes"', f'kind = "{kind}"'))
        assert run(["report", str(begun)]) == 0
        assert f"looks back over 256 {unit}" in (begun / "report.html").read_text()


def test_a_page_of_many_heads_holds_the_text_once(trained, tmp_path, capsys):
    made = tmp_path / "a.html"
    many, text = str(trained / "many"), str(trained / "my.txt")
    assert run(["inspect", "attention", many, text, "--limit", "300", "-o", str(made)]) == 0
    page_of_six = made.read_text()
    assert_self_contained(page_of_six)
    heads = data_of(page_of_six)["heads"]
    names = [f"block {block}, head {head}" for block in (0, 1) for head in (0, 1, 2)]
    assert [head["name"] for head in heads] == names
    assert page_of_six.count('data-at="0"') == 1 and page_of_six.count("<h2>") == 3
    sections = page_of_six.split("<section>")[1:]
    assert all(re.findall(r"<option [^>]*>([^<]*)<", section) == names for section in sections)
    assert [section.count('data-of-head="') for section in sections] == [0, 6, 6]
    assert len({json.dumps(head["places"]) for head in heads}) == 6


@given(st.binary(max_size=60))
def test_units_cover_a_text_and_show_something(text):
    found = heat.units(text)
    assert [begin for begin, _, _ in found] == [0, *(end for _, end, _ in found)][: len(found)]
    assert (found[-1][1] if found else 0) == len(text)
    assert all(shown for _, _, shown in found)
    for made in (heat.coloured(text, np.zeros(len(text))), heat.plain(text)):
        assert "".join(re.findall(r">([^<]*)</b>", made)) == html.escape("".join(s for _, _, s in found))


def test_heat_by_example():
    made = heat.coloured("é\n".encode(), np.array([1.0, 3.0, -8.0]))
    assert '<b data-at="0" style="background:rgba(var(--heat),0.42)" title="4.00 bits">é</b>' in made
    assert '<b data-at="2" style="background:rgba(var(--cool),0.85)" title="-8.00 bits">⏎\n</b>' in made
    assert heat.name_of(b"\xff") == "\\xff" and heat.name_of(b" ") == "␣"


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_ticks_are_round_and_enclose(low, extent):
    found = ticks(low, low + extent)
    assert found[0] <= low + 1e-6 * (abs(low) + extent) and found[-1] >= low + extent - 1e-6 * (abs(low) + extent)
    assert 2 <= len(found) <= 9 and found == sorted(found)


def test_a_chart_draws_what_it_is_given():
    made = line_chart([Line("<x>", [(0, 2.0), (10, 1.0)], 0, marked=True)], "steps", "bits")
    assert made.count("<circle") == 2 and "&lt;x&gt;" in made and "<x>" not in made
    assert "Nothing measured yet" in line_chart([], "steps", "bits")


def test_an_axis_that_doubles_has_equal_steps_and_marks_stand_on_it():
    line = Line("x", [(1, 3.0), (2, 2.0), (4, 1.5), (8, 1.4)], 0, marked=True)
    marks = [Mark("<n>", 4, 1), Mark("beyond", 16, 2)]
    made = line_chart([line], "context", "bits", doubling=True, marks=marks)
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', made)]
    assert np.allclose(np.diff(places), places[1] - places[0], atol=0.11)
    assert re.findall(r'class="mark c(\d)" x1="([\d.]+)"', made) == [("1", f"{places[2]:.1f}")]
    assert "&lt;n&gt;" in made and "beyond" not in made
    assert re.findall(r'text-anchor="middle">([^<]+)<', made)[:4] == ["1", "2", "4", "8"]
    wide = line_chart([Line("x", [(1, 1.0), (4_096, 2.0)], 0, marked=True)], "context", "bits", doubling=True)
    assert ">4,096<" in wide and ">1,024<" in wide and ">2,048<" not in wide


@pytest.mark.parametrize("doubling", [True, False])
def test_a_lone_point_stands_in_the_middle(doubling):
    made = line_chart([Line("x", [(4, 2.5)], 0, marked=True)], "context", "bits", doubling=doubling)
    ((x, y),) = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', made)
    assert 250 < float(x) < 550 and 80 < float(y) < 200
    assert ">4<" in made


def test_what_was_measured_is_never_cut_off_at_the_top():
    """Training curves are, where their first steps are far above the rest."""
    points = [(i, 50.0 if i == 1 else 1.0) for i in range(1, 101)]
    marked, thin = (line_chart([Line("x", points, 0, marked=m)], "steps", "bits") for m in (True, False))
    assert ">50<" in marked and ">50<" not in thin
    # It comes from above, and is cut off by a box, not led along the upper edge.
    inner = re.search(r'<svg x="108" y="14"[^>]*><polyline class="line c0 thin" points="([^"]*)"/></svg>', thin)
    heights = [float(point.split(",")[1]) for point in inner[1].split()]
    assert heights[0] < -1_000 and min(heights[1:]) >= 14 and "<svg x=" not in marked


def test_equal_blocks_are_drawn_once():
    block = [Part("LSTM", (8, 8), i) for i in range(12)]
    made = drawing([Part("embedding", (256, 8)), *block, Part("LSTM", (8, 8), 12, looks_back=5)])
    assert made.count("<polygon") == 3 and "12 times" in made and "looks back over 5 bytes" in made
    assert "looks back over 5 tokens" in drawing([Part("attention", (8, 8), 0, looks_back=5)], "token")


def test_page_and_table_escape():
    data = {"text": "<!--<script></script>"}
    made = page("<t>", [Section("<a>", "", table([("<b>", "1")], ("x", "<y>"), (1,)))], data)
    assert "<t>" not in made and "<a>" not in made and "<b>" not in made.replace("<body>", "") and "<y>" not in made
    assert data_of(made) == data and "<!--" not in made
    cards = table([("a", "<1>")], ("x", "<y>"), (1,), cards=True)
    assert '<td data-name="x">a</td><td class=number data-name="&lt;y&gt;">&lt;1&gt;</td>' in cards


def test_a_table_that_is_too_wide_shows_that_it_scrolls():
    """A shadow that stays at the edge, under a cover that moves along with the table; on paper neither."""
    style = (ASSETS / "page.css").read_text()
    scroll = style.split("\n.scroll {")[1].split("}")[0]
    assert scroll.count("no-repeat local") == 2 and scroll.count("no-repeat scroll") == 2 and "--shade" in scroll
    assert ".scroll { overflow: visible; background: none; }" in style


def test_averaged_points_of_a_curve_stand_in_the_middle_of_what_they_are_of():
    steps = [{"event": "step", "step": n, "bytes": n, "seconds": n, "bits_per_byte": 5.0} for n in range(1, 1_201)]
    points = re.search(r'class="line c0 thin" points="([^"]*)"', curves([("one", steps)]))[1].split()
    places = [float(point.split(",")[0]) for point in points]
    assert len(places) == 240
    # Five steps a point: the first is step 3 of 1 … 1,200, as far from the left as the last is from the right.
    assert places[0] - 108 == pytest.approx((3 - 0) / 1_200 * (720 - 34 - 108), abs=0.1)


def test_a_colour_that_is_used_again_is_dashed():
    lines = [Line(str(n), [(0, n), (1, n)], n, marked=bool(n % 2)) for n in range(8)]
    drawn = line_chart(lines, "steps", "bits")
    assert drawn.count(" again") == 4 and 'class="line c0 again thin"' in drawn and 'class="line c1 again"' in drawn
    assert 'class="key c1 again"' in drawn

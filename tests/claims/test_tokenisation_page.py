"""The page of the tokenisation claim: both budgets, all kinds, and sentences where there is nothing to show."""

import re

from headcount.claims.tokenisation_page import sections
from headcount.show.page import page
from tests.claims.test_tokenisation_verdict import record  # noqa: F401 (a fixture)
from tests.show.test_pages import assert_self_contained


def by_title(record):  # noqa: F811
    return {section.title: section for section in sections(record)}


def test_both_budgets_have_their_plots_and_bytes_are_in_both(record):  # noqa: F811
    found = by_title(record)
    for title in ("Bits over equal bytes", "Bits by place in a word", "The password: with feedback and without"):
        assert found[title].body.count("<h3>") == 2 and found[title].body.count("<td>bytes</td>") == 2, title
    assert found["Bits by place in a word"].body.count("<svg") == 2
    assert_self_contained(page("title", found.values()))


def test_parameters_are_shown_apart_and_what_is_left_out_is_said(record):  # noqa: F811
    body = by_title(record)["What was trained"].body
    assert "parameters of the body" in body and "of the vocabulary" in body and "window in bytes" in body
    assert "words are left out: 3 of 9 words are unknown." in body


def test_words_that_are_overstated_most_are_shown(record):  # noqa: F811
    body = by_title(record)["What a canonical segmentation overstates"].body
    assert (
        "<td>␣it</td><td class=number>0.50</td><td class=number>9.00</td><td>␣i t</td>" in body
        and body.count("␣it") == 1
    )


def columns_of(body):
    heads = (re.findall(r"<th[^>]*>([^<]*)</th>", part) for part in body.split("<table")[1:])
    return [head for head in heads if head]


def test_what_a_table_is_about_comes_first(record):  # noqa: F811
    """What stands further to the right is cut away on a narrow screen until somebody scrolls."""
    found = by_title(record)
    assert [columns[:2] for columns in columns_of(found["The password: with feedback and without"].body)] == [
        ["tokens", "saved"]
    ] * 2
    rows, largest = columns_of(found["What a canonical segmentation overstates"].body)
    assert rows[:3] == ["tokens", "overstated", "share"] and largest[:3] == ["tokens", "word", "overstated"]
    body = found["What a canonical segmentation overstates"].body
    assert "<td class=number>0.0500 ± 0.0050</td><td class=number>2.000%</td><td>bytes</td>" in body
    assert "up to 8,192 tokens" in found["What a canonical segmentation overstates"].about


def test_seconds_that_were_not_equal_are_said_where_their_numbers_are(record):  # noqa: F811
    title = "Bits over equal bytes"
    assert "Not equal" not in by_title(record)[title].body
    record["runs"][2]["seconds"] = 20.0
    said = "Not equal, and not judged: wordpieces 1k learnt for 20 seconds where bytes had 10."
    assert (
        f"<h3>At equal seconds</h3><p>{said}</p>" in by_title(record)[title].body
        and by_title(record)[title].body.count("Not equal") == 1
    )


def test_one_budget_alone_has_one_heading(record):  # noqa: F811
    record["runs"] = [run for run in record["runs"] if run["budget"] == "bytes"]
    assert by_title(record)["Bits over equal bytes"].body.count("<h3>") == 1


def test_a_text_without_letters_and_a_single_word(record):  # noqa: F811
    for run in record["runs"]:
        run["places"] = []
        run["overstated"]["error"] = None
    found = by_title(record)
    assert "has no letters" in found["Bits by place in a word"].body
    assert "± unknown" in found["What a canonical segmentation overstates"].body


def test_nothing_found_is_a_sentence(record):  # noqa: F811
    for run in record["runs"]:
        run["spellings"] = {"cases": [], "stem": None, "choice": None}
        run["names"] = {
            which: {"names": 0, "bits": None, "error": None, "opening": None} for which in ("first", "later")
        }
        run["overstated"] = None
        run["guesses"]["words"] = 0
    record["pairs"] = {}
    assert "There is no such place." in by_title(record)["-ize or -ise"].body


def test_errors_stand_beside_what_they_are_of(record):  # noqa: F811
    found = by_title(record)
    assert "30.00 ± 3.00" in found["The password: with feedback and without"].body
    assert "9.00 ± 0.50" in found["-ize or -ise"].body and "1.000 ± 0.250" in found["-ize or -ise"].body
    assert "One seed (7): ± is of the text" in found["Bits over equal bytes"].about
    assert "At 2 places of" in found["-ize or -ise"].about
    for run in record["runs"]:
        run["spellings"]["cases"] = run["spellings"]["cases"][:1]
    assert "At 1 place of" in by_title(record)["-ize or -ise"].about


def test_every_run_has_its_figure(record):  # noqa: F811
    body = by_title(record)["The figures"].body
    assert body.count("2.0000 bits per byte · carried: 1 stream, segments of 512") == 3
    assert body.count("weights aaaaaaaaaaaa · 2026-11-18") == 3
    assert "headcount claim tokenisation --text my.txt" in body and "Seed 7, headcount 0.1.0." in body

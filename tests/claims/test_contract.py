"""The frame: names lead to claims, and a claim leaves its record and its page in its folder."""

import json

import pytest

from headcount.claims import CLAIMS, claim_called
from headcount.claims.contract import PAGE, RECORD, Claim, Setting
from headcount.errors import RequestError
from headcount.show.page import Section
from headcount.tables import CorpusTable
from tests.show.test_pages import assert_self_contained


class Small(Claim):
    name, source, says, tested = "small", "Nobody 2019, 1.2", "<b> is bold", "by looking"

    def measure(self, setting):
        return {"found": 3}

    def verdict(self, record):
        return f"It is {record['found']}.\n\nBecause <it> is."

    def sections(self, record):
        return [Section("The number", "", f"<p>{record['found']}</p>")]


def setting(folder, **rest):
    return Setting(corpus=CorpusTable(), folder=folder, **rest)


def test_a_claim_leaves_its_record_and_its_page(tmp_path):
    result = Small().run(setting(tmp_path))
    record = json.loads((tmp_path / RECORD).read_text())
    assert record == result.record and record["verdict"] == result.verdict == "It is 3.\n\nBecause <it> is."
    assert {"claim": "small", "source": "Nobody 2019, 1.2", "found": 3}.items() <= record.items()
    page = (tmp_path / PAGE).read_text()
    assert_self_contained(page)
    assert "<p>It is 3.</p><p>Because &lt;it&gt; is.</p>" in page and "&lt;b&gt; is bold" in page and "<p>3</p>" in page


@pytest.mark.parametrize("wrong", [{"minutes": 0}, {"minutes": float("nan")}, {"bytes": 0}, {"bytes": 9, "minutes": 1}])
def test_a_budget_that_is_none_is_refused_before_anything_is_made(tmp_path, wrong):
    with pytest.raises(RequestError, match=r"--(minutes|bytes)"):
        Small().run(setting(tmp_path / "new", **wrong))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_says_what_it_is(name):
    found = claim_called(name)
    assert found.name == name and all(found.about().values()) and found.about()["claim"] == name


def test_a_name_that_is_none():
    with pytest.raises(RequestError, match="did you mean 'tokenisation'"):
        claim_called("tokenization")

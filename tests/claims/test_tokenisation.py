"""The whole claim on a small text: trained once, measured over equal bytes, gone on with, and shown."""

import json

import numpy as np
import pytest

import headcount.use.train as training
from headcount import load
from headcount.claims import tokenisation
from headcount.claims.contract import PAGE, RECORD, Setting
from headcount.claims.tokenisation import Tokenisation
from headcount.claims.trainings import held_out_of, open_source
from headcount.errors import RequestError
from headcount.tables import CorpusTable
from tests.show.test_pages import assert_self_contained

pytest.importorskip("tokenizers")

SMALL = ("model.width=8", "batches.streams=4", "batches.segment=32", "evaluate.limit=2048")


def closed_text() -> bytes:
    """Lines of few words, all of them everywhere, so that words restore it; two spellings and a name among them."""
    draw = np.random.default_rng(0)
    words = [b"the", b"cat", b"organise", b"organize", b"Gandalf", b"on", b"it", b"straightforwardly", b"sat"]
    lines = (b" ".join(words[i] for i in draw.integers(0, len(words), 9)) for _ in range(700))
    return b"the " + b"\nthe ".join(lines) + b"\n"


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claim")
    (folder / "my.txt").write_bytes(closed_text())
    corpus = CorpusTable(path=str(folder / "my.txt"))
    return Setting(corpus=corpus, folder=folder / "claim", bytes=12_800, set=SMALL)


@pytest.fixture(scope="module")
def result(setting, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADCOUNT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(tokenisation, "MOST_WORDS", 12)
        return Tokenisation().run(setting)


def test_every_kind_is_trained_at_equal_bytes_and_equal_seconds(result, setting):
    runs = result.record["runs"]
    kinds = ["bytes", "wordpieces-1k", "wordpieces-8k", "words"]
    names = [f"{kind}-equal-bytes" for kind in kinds] + [f"{kind}-equal-seconds" for kind in kinds[1:]]
    assert [run["run"] for run in runs] == names and result.record["left_out"] == {}
    assert len({run["parameters"]["body"] for run in runs}) == 1
    for run in runs:
        lm = load(setting.folder / run["run"])
        assert run["parameters"]["vocabulary"] == lm.tokens.vocabulary * 9  # a row of 8 and a bias each
        assert run["window"]["bytes"] == pytest.approx(256, rel=0.05)
    read = [run["bytes_read"] for run in runs if run["budget"] == "bytes"]
    assert max(read) < 1.15 * min(read) and abs(read[0] - 12_800) < 200


def test_bits_are_those_of_the_same_bytes(result, setting):
    held_out = held_out_of(open_source(setting), 2_048).tobytes()
    assert result.record["held_out"]["bytes"] == len(held_out)
    plain = load(setting.folder / "bytes-equal-bytes").score(held_out)
    for run in result.record["runs"]:
        bits = load(setting.folder / run["run"]).score(held_out)
        assert run["bits"] == pytest.approx(bits.sum(), rel=1e-6)
        assert run["bits_per_byte"] == pytest.approx(bits.sum() / len(held_out), rel=1e-6)
        assert run["bits_per_token"] * run["tokens_scored"] == pytest.approx(run["bits"], rel=1e-9)
        assert run["against_bytes"]["difference"] == pytest.approx((bits - plain).mean(), abs=1e-9)
        letters = sum(chr(byte).isalpha() for byte in held_out)
        assert sum(place["count"] for place in run["places"] if place["place"]) == letters


def test_canonical_segmentations_overstate_and_bytes_do_not(result):
    for run in result.record["runs"]:
        over = run["overstated"]
        if run["tokens"]["kind"] == "words":
            assert over is None
        elif run["tokens"]["kind"] == "bytes":
            assert over["deviation"] < tokenisation.CHAIN_RULE and over["words"] == 12
        else:
            assert over["overstated"] > -1e-3 and over["share"] < 1
            found = [word["overstated"] for word in over["largest"]]
            assert len(found) == 5 and found == sorted(found, reverse=True)
            assert all("".join(word["pieces"]) == word["word"] for word in over["largest"])
    sampled = [run["overstated"]["sampled"] for run in result.record["runs"] if run["overstated"]]
    assert max(sampled) > 0  # of the word that is longer than twelve letters


def test_a_broken_chain_rule_is_not_passed_over(setting, result, monkeypatch):
    lm = load(setting.folder / "bytes-equal-bytes")
    held_out = held_out_of(open_source(setting), 2_048)
    text = tokenisation.encode(held_out, lm.tokens)
    heard = tokenisation.Heard(held_out, tokenisation._word_places(held_out.tobytes())[:2], (), ())
    with pytest.raises(AssertionError, match="chain rule"):
        tokenisation._overstated(lm, text, lm.score(held_out.tobytes()) + 0.01, heard)


def test_guesses_spellings_and_names_are_measured(result):
    assert result.record["pairs"].keys() == {"organize"}
    for run in result.record["runs"]:
        found = run["guesses"]
        assert found["words"] == 12 and 1 <= found["without"]["guesses"] <= 101 and found["with"]["guesses"] >= 1
        assert len(run["spellings"]["cases"]) > 5 and run["spellings"]["choice"] > 0
        assert run["names"]["first"]["names"] == 1 and run["names"]["later"]["bits"] > 0
    pieces = {run["run"]: run["guesses"]["pieces"] for run in result.record["runs"]}
    assert pieces["bytes-equal-bytes"] > pieces["wordpieces-1k-equal-bytes"] >= pieces["words-equal-bytes"]


def test_the_page_shows_what_the_record_says(result, setting):
    page = (setting.folder / PAGE).read_text()
    assert_self_contained(page)
    for run in result.record["runs"]:
        assert f"{run['bits']:,.0f}" in page and f"{run['parameters']['vocabulary']:,}" in page and run["run"] in page
    assert page.count("<polyline") == 8
    assert json.loads((setting.folder / RECORD).read_text()) == json.loads(json.dumps(result.record))


def test_what_is_finished_is_not_trained_again(result, setting, monkeypatch):
    for name in ("train", "resume"):
        monkeypatch.setattr(training, name, lambda *_, **__: pytest.fail("trained again"))
    monkeypatch.setattr(tokenisation, "MOST_WORDS", 12)
    again = Tokenisation().run(setting)
    assert again.record == result.record and again.verdict == result.verdict


def test_too_little_held_out_text_is_refused(tmp_path):
    (tmp_path / "my.txt").write_bytes(b"a few words\n" * 100)
    setting = Setting(corpus=CorpusTable(path=str(tmp_path / "my.txt")), folder=tmp_path / "claim")
    with pytest.raises(RequestError, match="held out"):
        Tokenisation().run(setting)
    assert not (tmp_path / "claim").exists()

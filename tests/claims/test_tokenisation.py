"""The whole claim on a small text: trained once, measured over equal bytes, gone on with, and shown."""

import json
import math
import statistics
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headcount
import headcount.use.train as training
from headcount import load
from headcount.claims import tokenisation, trainings
from headcount.claims.contract import PAGE, RECORD, Setting
from headcount.claims.guesses import Openings, guess
from headcount.claims.tokenisation import Tokenisation
from headcount.claims.tokenisation_verdict import first_letter
from headcount.claims.trainings import held_out_of, open_source
from headcount.errors import RequestError
from headcount.learn.run import Run
from headcount.measure.score import score
from headcount.measure.spelled import score_bytes
from headcount.tables import CorpusTable
from headcount.text.encoding import encode
from tests.claims.conftest import small_model
from tests.show.test_pages import assert_self_contained

pytest.importorskip("tokenizers")


def heard_of(held_out, words):
    return tokenisation.Heard("my.txt", ["headcount"], held_out, words, (), ())


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
    kinds = ["bytes", "wordpieces-1k", "words"]
    names = [f"{kind}-equal-bytes" for kind in kinds] + [f"{kind}-equal-seconds" for kind in kinds[1:]]
    assert [run["run"] for run in runs] == names
    assert list(result.record["left_out"]) == ["wordpieces 8k"]  # they would be the same symbols: nothing to compare
    assert "symbols of wordpieces 1k" in result.verdict
    assert len({run["parameters"]["body"] for run in runs}) == 1
    for run in runs:
        lm = load(setting.folder / run["run"])
        assert run["parameters"]["vocabulary"] == lm.tokens.vocabulary * 9  # a row of 8 and a bias each
        assert run["window"]["bytes"] == pytest.approx(256, rel=0.05)
        assert run["window"]["tokens"] == lm.model.config.window == round(256 / run["tokens"]["bytes_per_token"])
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
        assert run["bits_per_token"] * run["tokens_scored"] == pytest.approx(run["bits"], rel=1e-5)
        lm = load(setting.folder / run["run"])
        by_token = np.concatenate(list(score(lm.model, lm.read(held_out).ids, start=lm.tokens.start)))
        assert run["spread"] == pytest.approx(by_token.std() / by_token.mean(), rel=1e-5)
        assert run["restored"] == result.record["held_out"]["sha256"]
        apart = bits - plain
        assert run["against_bytes"]["difference"] == pytest.approx(apart.mean(), abs=1e-9)
        blocks = [apart[i : i + 512].mean() for i in range(0, len(apart) - 511, 512)]
        assert run["against_bytes"]["error"] == pytest.approx(statistics.stdev(blocks) / len(blocks) ** 0.5, abs=1e-9)
        assert (run["against_bytes"]["error"] == 0) == (run["run"] == "bytes-equal-bytes")


def test_every_run_has_a_figure_over_exactly_these_bytes(result, setting):
    record = result.record
    assert record["version"] == headcount.__version__ and record["seed"] == 1
    assert record["command"] == (
        f"headcount claim tokenisation --text {setting.corpus.path} --run {setting.folder} --bytes 12800 "
        "--set model.width=8 --set batches.streams=4 --set batches.segment=32 --set evaluate.limit=2048"
    )
    for run in record["runs"]:
        figure, lm = run["figure"], load(setting.folder / run["run"])
        assert figure["value"] * len(held_out_of(open_source(setting), 2_048)) == pytest.approx(run["bits"], rel=1e-5)
        assert figure["bytes"] == record["held_out"]["bytes"] and figure["unit"] == "bits per byte"
        assert figure["corpus"]["sha256"] == record["held_out"]["sha256"] and figure["protocol"]["name"] == "carried"
        assert figure["model"] == lm.describe() and figure["model"]["kind"] == "sha-rnn"
        assert figure["command"] == record["command"] and figure["date"]
        assert figure in lm.run.figures() and lm.run.own_figure()["corpus"]["split"] == "valid"


def test_bits_by_place_are_those_of_the_letters(result, setting):
    held_out = held_out_of(open_source(setting), 2_048).tobytes()
    for run in result.record["runs"]:
        counts, sums, place = Counter(), Counter(), 0
        for i, each in enumerate(load(setting.folder / run["run"]).score(held_out)):
            letter = chr(held_out[i]).isalpha()
            place = min(place + 1, tokenisation.PLACES) if letter else 0
            if letter or chr(held_out[i + 1] if i + 1 < len(held_out) else 0).isalpha():
                counts[place] += 1
                sums[place] += each
        assert {found["place"]: found["count"] for found in run["places"]} == dict(counts)
        for found in run["places"]:
            assert found["bits"] == pytest.approx(sums[found["place"]], rel=1e-6)
        share, size = first_letter(run)
        assert run["beginning"]["excess"] == pytest.approx(share - size) and run["beginning"]["error"] > 0
        assert run["beginning"]["blocks"] == run["against_bytes"]["blocks"] == len(held_out) // 512
        assert share == pytest.approx(sums[1] / sum(sums[i] for i in range(1, 11)), rel=1e-6)
        assert size == pytest.approx(counts[1] / sum(counts[i] for i in range(1, 11)))


def test_the_error_of_first_letters_is_that_of_drawing_other_blocks(monkeypatch):
    """The error by its formula, and the spread of the same number over texts of other blocks."""
    draw = np.random.default_rng(0)
    words = [b"the ", b"of ", b"which ", b"straightforward ", b"organisation\n"]
    text = np.frombuffer(b"".join(words[i] for i in draw.integers(0, 5, 9_000)), dtype=np.uint8)[: 64 * 512]
    bits = draw.gamma(0.5, 4.0, len(text)) * np.where(np.append(10, text[:-1]) <= 32, 1.3, 1.0)
    bits *= np.repeat(draw.gamma(2.0, 0.5, 64), 512)  # some stretches are harder than others, which moves no share
    found = tokenisation._beginning(text, bits)
    assert found["blocks"] == 64 and found["excess"] > 0.01
    blocks, many = np.arange(len(text)).reshape(64, 512), []
    place = tokenisation.place_in_word(text)
    for _ in range(2_000):
        chosen = blocks[draw.integers(0, 64, 64)].ravel()
        of, where = bits[chosen], place[chosen]
        many.append(of[where == 1].sum() / of[where > 0].sum() - (where == 1).sum() / (where > 0).sum())
    assert found["error"] == pytest.approx(np.std(many), rel=0.1)
    numbers = np.frombuffer(b"12 34\n" * 200, dtype=np.uint8)
    assert tokenisation._beginning(numbers, np.ones(1_200)) == {"excess": 0.0, "error": None, "blocks": 2}


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
        assert over is None or over["sampled"] == 0  # the long word of this text has few paths


def test_what_ends_a_word_is_charged_to_it(wordpieces):
    """The canonical bits of a word and of a full stop, a token of one byte, by hand."""
    model, text = small_model(wordpieces.vocabulary), np.frombuffer(b"ba abb. ab", dtype=np.uint8)
    encoded = encode(text, wordpieces)
    lm = SimpleNamespace(model=model, tokens=wordpieces)
    bits = np.concatenate(list(score_bytes(model, encoded))) / math.log(2)
    found = tokenisation._overstated(lm, encoded, bits, heard_of(text, [(2, 6)]))
    ids = [int(symbol) for symbol in encoded.ids]
    assert [wordpieces.spellings[symbol] for symbol in ids][:5] == [b"ba", b" ", b"ab", b"b", b"."]
    hidden, _ = model(torch.tensor([[wordpieces.start, *ids]]), model.start(1))
    logs = model.head.log_probs(hidden)[0].double().detach().numpy() / math.log(2)
    by_hand = -sum(logs[place, ids[place]] for place in (1, 2, 3, 4))
    assert found["words"] == 1 and found["canonical"] == pytest.approx(by_hand, abs=1e-4)


def test_a_broken_chain_rule_is_not_passed_over(setting, result, monkeypatch):
    lm = load(setting.folder / "bytes-equal-bytes")
    held_out = held_out_of(open_source(setting), 2_048)
    text = tokenisation.encode(held_out, lm.tokens)
    heard = heard_of(held_out, tokenisation._word_places(held_out.tobytes())[:2])
    with pytest.raises(AssertionError, match="chain rule"):
        tokenisation._overstated(lm, text, lm.score(held_out.tobytes()) + 0.01, heard)


def test_guesses_spellings_and_names_are_measured(result, setting):
    """What is recorded of the guesses, one by one again."""
    held_out = held_out_of(open_source(setting), 2_048)
    places = tokenisation._word_places(held_out.tobytes())
    places = [places[round(i * (len(places) - 1) / 11)] for i in range(12)]
    assert result.record["pairs"].keys() == {"organize"}
    for run in result.record["runs"]:
        found = run["guesses"]
        lm = load(setting.folder / run["run"])
        text = encode(held_out, lm.tokens)
        whole, pieces, ranks = [], [], []
        for word, symbols, branch, _ in tokenisation._at_words(lm, text, heard_of(held_out, places)):
            one = guess(branch, word, symbols, Openings(lm.tokens.spellings))
            whole.append(100 if one.whole is None else int(one.whole) - 1)
            pieces.append(min(sum(int(rank) - 1 for rank in one.ranks), 100))
            ranks += one.ranks
        assert found["words"] == len(whole) == 12 and 0 < statistics.mean(whole) <= 100
        assert found["without"]["wrong"] == pytest.approx(statistics.mean(whole))
        assert found["without"]["first"] == pytest.approx(whole.count(0) / 12)
        assert found["without"]["within"] == pytest.approx(1 - whole.count(100) / 12)
        assert found["with"]["wrong"] == pytest.approx(statistics.mean(pieces))
        assert found["with"]["first_piece"] == pytest.approx(ranks.count(1) / len(ranks))
        saved = [one - other for one, other in zip(whole, pieces, strict=True)]
        assert found["saved"]["guesses"] == pytest.approx(statistics.mean(saved))
        assert found["saved"]["error"] == pytest.approx(statistics.stdev(saved) / 12**0.5)
        assert len(run["spellings"]["cases"]) > 5 and run["spellings"]["choice"] > 0
        assert run["names"]["first"]["names"] == 1 and run["names"]["later"]["bits"] > 0
    pieces = {run["run"]: run["guesses"]["pieces"] for run in result.record["runs"]}
    assert pieces["bytes-equal-bytes"] > pieces["wordpieces-1k-equal-bytes"] >= pieces["words-equal-bytes"]


def test_the_page_shows_what_the_record_says(result, setting):
    page = (setting.folder / PAGE).read_text()
    assert_self_contained(page)
    for run in result.record["runs"]:
        assert f"{run['bits']:,.0f}" in page and f"{run['parameters']['vocabulary']:,}" in page and run["run"] in page
    assert page.count("<polyline") == 6
    assert json.loads((setting.folder / RECORD).read_text()) == json.loads(json.dumps(result.record))


def test_what_is_finished_is_not_trained_again(result, setting, monkeypatch):
    for name in ("train", "resume"):
        monkeypatch.setattr(training, name, lambda *_, **__: pytest.fail("trained again"))
    monkeypatch.setattr(tokenisation, "MOST_WORDS", 12)
    with monkeypatch.context() as patch:
        patch.setattr(tokenisation, "_measured", lambda *_: pytest.fail("measured again"))
        again = Tokenisation().run(setting)
    assert again.record == result.record and again.verdict == result.verdict
    (setting.folder / tokenisation.MEASURED / "bytes-equal-bytes.json").write_text("{")
    figures = Run(setting.folder / "bytes-equal-bytes").figures()
    monkeypatch.setattr(tokenisation, "_guesses", lambda *_: result.record["runs"][0]["guesses"])
    once_more = Tokenisation().run(setting)  # what is damaged is measured, and nothing else
    assert once_more.record["runs"][1:] == result.record["runs"][1:]
    assert len(Run(setting.folder / "bytes-equal-bytes").figures()) == len(figures) + 1


@pytest.mark.parametrize(
    "words", [("мама", "идва", "днес", "ябълка"), ("12", "34", "567")], ids=["cyrillic", "numbers"]
)
def test_a_text_without_ascii_letters(tmp_path, monkeypatch, words):
    """Nothing is lost at the end of all trainings; letters of any script are letters."""
    draw = np.random.default_rng(1)
    lines = (" ".join(words[i] for i in draw.integers(0, len(words), 6)) for _ in range(300))
    (tmp_path / "my.txt").write_text("\n".join(lines) + "\n")
    corpus = CorpusTable(path=str(tmp_path / "my.txt"))
    monkeypatch.setattr(trainings, "KINDS", trainings.KINDS[:1])
    found = Tokenisation().run(Setting(corpus=corpus, folder=tmp_path / "claim", bytes=256, set=SMALL))
    assert (tmp_path / "claim" / PAGE).exists()
    letters = {place["place"]: place["count"] for place in found.record["runs"][0]["places"]}
    if words[0] == "12":
        assert letters == {} and "first letters" not in found.verdict
        return
    held_out = held_out_of(open_source(Setting(corpus=corpus, folder=tmp_path)), 2_048).tobytes().decode()
    assert letters[1] == len(held_out.split()) and letters[6] == held_out.count("ябълка")
    assert "first letters are" in found.verdict


def test_too_little_held_out_text_is_refused(tmp_path):
    (tmp_path / "my.txt").write_bytes(b"a few words\n" * 100)
    setting = Setting(corpus=CorpusTable(path=str(tmp_path / "my.txt")), folder=tmp_path / "claim")
    with pytest.raises(RequestError, match="held out"):
        Tokenisation().run(setting)
    assert not (tmp_path / "claim").exists()

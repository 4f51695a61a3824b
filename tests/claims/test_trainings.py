"""What is trained: the same body with lengths in bytes, kinds that restore the text, a plan that is kept."""

import json

import numpy as np
import pytest

from headcount.claims import trainings
from headcount.claims.contract import Setting
from headcount.claims.trainings import Kind
from headcount.errors import DataError, RequestError
from headcount.learn import calibrate
from headcount.learn.calibrate import Timing
from headcount.tables import CorpusTable
from tests.conftest import make_text


@pytest.fixture
def setting(tmp_path, text_file):
    return Setting(corpus=CorpusTable(path=str(text_file)), folder=tmp_path / "claim", bytes=20_480)


@pytest.fixture(autouse=True)
def _no_timing(monkeypatch):
    """A step of bytes takes 2 seconds, of everything else 1; nothing is run for it."""
    monkeypatch.setattr(
        calibrate, "time_steps", lambda plan, *_: Timing(2.0 if plan.tokens.kind == "bytes" else 1.0, 0.0, 0.0)
    )


BYTES = Kind("bytes", {"kind": "bytes"}, 1.0)
PIECES = Kind("wordpieces 1k", {"kind": "wordpieces", "vocabulary": 300}, 4.0)


def test_lengths_are_in_bytes(setting):
    corpus = trainings.open_source(setting)
    body = trainings.body_recipe(setting, corpus)
    plain, pieces = (trainings.recipe_under(body, kind, 10) for kind in (BYTES, PIECES))
    assert plain.model["window"] == 4 * pieces.model["window"] == trainings.BODY.window
    assert plain.batches.segment == 4 * pieces.batches.segment == trainings.BODY.segment
    assert plain.tokens.kind == "bytes" and pieces.tokens.vocabulary == 300
    for key in ("width", "blocks", "attention", "boom"):
        assert plain.model[key] == pieces.model[key]


def test_the_held_out_text_is_whole_lines(setting, text_file):
    corpus = trainings.open_source(setting)
    text = trainings.held_out_of(corpus, 2_000)
    valid = corpus.split("valid").tobytes()
    found = text.tobytes()
    assert len(found) <= 2_000 and found.endswith(b"\n") and valid.find(b"\n" + found) == valid.find(b"\n")


def test_equal_bytes_and_equal_seconds(setting, monkeypatch):
    corpus = trainings.open_source(setting)
    body = trainings.body_recipe(setting, corpus)
    monkeypatch.setattr(trainings, "train", lambda setting, body, kind, wanted: wanted.name)
    # In the log, steps of wordpieces took half as long.
    monkeypatch.setattr(trainings, "step_seconds", lambda name: 0.8 if name.startswith("bytes") else 0.4)
    found = trainings.train_all(setting, corpus, body, [BYTES, PIECES])
    assert [(name, one.steps) for name, one in found] == [
        ("bytes-equal-bytes", 10),
        ("wordpieces-1k-equal-bytes", 10),
        ("wordpieces-1k-equal-seconds", 20),
    ]


class Logged:
    """A run with a log of steps that took so long."""

    def __init__(self, *times, skipped=()):
        ends = np.cumsum(times)
        self.log = [
            {"event": "skipped", "step": step} if step in skipped else {"event": "step", "step": step, "seconds": end}
            for step, end in enumerate(ends.tolist(), 1)
        ]

    def events(self):
        return [{"event": "started"}, *self.log, {"event": "finished", "seconds": 99.0}]


def test_what_a_step_took_is_neither_of_the_first_ones_nor_of_a_crowded_minute():
    assert trainings.step_seconds(Logged(3.0, 2.0, 1.0, 1.0, 1.0, *[0.5] * 60, *[4.0] * 20)) == pytest.approx(0.5)
    assert trainings.step_seconds(Logged(3.0)) == 3.0
    assert trainings.step_seconds(Logged(9.0, 9.0, 0.5, 0.5)) == pytest.approx(
        0.5
    )  # of four the first two are left out
    assert trainings.step_seconds(Logged(*[0.5] * 20, skipped=range(8, 18))) == pytest.approx(0.5)
    many = [9.0] * trainings.WARM_UP + [0.5, 9.0, 0.5, 0.5, 9.0, 0.5]  # with one more of the first ones it would be 9
    assert trainings.step_seconds(Logged(*many)) == pytest.approx(0.5)


def test_the_budget_is_shared_out(setting):
    pytest.importorskip("tokenizers")
    corpus = trainings.open_source(setting)
    minutes = Setting(corpus=setting.corpus, folder=setting.folder, minutes=1)
    steps = trainings.plan(minutes, corpus, trainings.body_recipe(minutes, corpus), [BYTES, PIECES])
    spent = 2 * steps + steps + 2 * steps  # bytes; as many steps of wordpieces; as many seconds of them
    assert 0.8 < spent / (60 * trainings.TRAINING_SHARE) <= 1


def test_the_plan_is_kept_and_belongs_to_what_was_asked(setting, monkeypatch):
    corpus = trainings.open_source(setting)
    body = trainings.body_recipe(setting, corpus)
    first = trainings.plan(setting, corpus, body, [BYTES])
    monkeypatch.setattr(calibrate, "time_steps", None)  # it is not timed again
    assert trainings.plan(setting, corpus, body, [BYTES]) == first
    other = Setting(corpus=setting.corpus, folder=setting.folder, bytes=99)
    with pytest.raises(RequestError, match=r"another bytes.*--run"):
        trainings.plan(other, corpus, body, [BYTES])
    (setting.folder / trainings.PLAN).write_text("{")
    with pytest.raises(DataError, match="damaged"):
        trainings.plan(setting, corpus, body, [BYTES])
    (setting.folder / trainings.PLAN).write_text(json.dumps({"asked": None}))
    with pytest.raises(DataError, match="damaged"):
        trainings.plan(setting, corpus, body, [BYTES])


@pytest.mark.parametrize("change", ["tokens.kind=words", "train.steps=3", "train.epochs=1.0"])
def test_what_is_compared_cannot_be_set(setting, change):
    corpus = trainings.open_source(setting)
    with pytest.raises(RequestError, match="--set"):
        trainings.body_recipe(Setting(corpus=setting.corpus, folder=setting.folder, set=[change]), corpus)


def test_words_take_part_where_they_restore_the_text(tmp_path):
    pytest.importorskip("tokenizers")
    closed = b"the cat sat on the mat\nthe dog sat on the cat\n" * 400
    for content, restored in ((closed, True), (make_text(20_000), False)):
        file = tmp_path / f"{restored}.txt"
        file.write_bytes(content)
        corpus = trainings.open_source(Setting(corpus=CorpusTable(path=str(file)), folder=tmp_path / "claim"))
        kinds, left_out = trainings.find_kinds(corpus, trainings.held_out_of(corpus, 1_000))
        names = [kind.name for kind in kinds]
        assert names[:2] == ["bytes", "wordpieces 1k"] and ("words" in names) == restored
        assert ("wordpieces 8k" in names) == ("wordpieces 8k" not in left_out)
        assert restored or "words are unknown" in left_out["words"]
        assert kinds[0].bytes_per_token == 1 and all(kind.bytes_per_token > 1.5 for kind in kinds[1:])
        assert np.isfinite([kind.bytes_per_token for kind in kinds]).all()

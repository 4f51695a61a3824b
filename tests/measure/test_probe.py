"""The copying probe with models that copy from as far back as they are made to, and with one that does not."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from headcount.errors import RequestError
from headcount.measure.probe import CUE, LEAD, LETTERS, copying, distances, length, plant
from headcount.models.contract import Model, ModelState

TEXT = np.random.default_rng(0).integers(ord("0"), ord("9") + 1, size=3_000, dtype=np.uint8)
"""Digits: no letter of a planted word occurs by chance."""
SURE = 12.0


@dataclass(kw_only=True)
class Read(ModelState):
    text: torch.Tensor


class Logits:
    """Hidden vectors are the logits."""

    def nll(self, hidden, targets):
        return F.cross_entropy(hidden.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)


class Copier(Model):
    """Expects what followed the last three bytes when it read them last, within its reach."""

    def __init__(self, reach, restarts_after=None):
        super().__init__()
        self.one, self.head, self.reach, self.full = nn.Parameter(torch.zeros(1)), Logits(), reach, restarts_after

    @property
    def restarts_after(self):
        return self.full

    def start(self, batch, window=None):
        return Read(text=torch.zeros(batch, 0, dtype=torch.long))

    def advance(self, tokens, state):
        text = torch.cat([state.text, tokens], dim=1)
        assert not self.full or text.shape[1] <= self.full
        logits = torch.zeros(*tokens.shape, 256)
        for row, line in enumerate(text.tolist()):
            line = bytes(line)
            for t in range(tokens.shape[1]):
                end = state.text.shape[1] + t + 1
                found = line.rfind(line[end - CUE : end], max(0, end - CUE - self.reach), end - 1)
                if found >= 0 and end >= CUE:
                    logits[row, t, line[found + CUE]] = SURE
        return logits, Read(text=text)


def test_who_copies_gains_and_who_does_not_does_not():
    tried = distances(128)
    assert tried == (16, 32, 64, 128)
    gains = copying(Copier(reach=70), TEXT, tried, trials=6).gain
    assert gains.shape == (4, 6)
    all_of_it = np.log(256) - np.log1p(255 * np.exp(-SURE))
    assert np.abs(gains[:3] - all_of_it).max() < 0.01 and not gains[3].any()
    assert not copying(Copier(reach=0), TEXT, tried, trials=6).gain.any()


def test_a_model_that_begins_anew_copies_within_its_window_only():
    gains = copying(Copier(reach=1_000, restarts_after=100), TEXT, (32, 64, 128), trials=4).gain
    assert (gains[:2] > 5).all() and not gains[2].any()
    whole, lacking = copying(Copier(reach=1_000, restarts_after=100), TEXT, (91, 92), trials=4).gain
    assert (whole > 5).all()  # the first word is the first thing of the 100 bytes before the last letter
    assert np.allclose(lacking, whole * 6 / 7)  # here its first letter is not among them: one letter has no cue


def test_nothing_but_the_first_word_differs():
    for distance in (16, 100):
        planted, without = plant(TEXT, distance, 20, seed=0)
        assert planted.shape == without.shape == (20, length(distance))
        differs = planted != without
        assert differs[:, LEAD : LEAD + LETTERS].any(axis=1).all()
        assert not differs[:, :LEAD].any() and not differs[:, LEAD + LETTERS :].any()
        first, second = planted[:, LEAD : LEAD + LETTERS], planted[:, LEAD + distance :]
        assert (first == second).all() and ((first >= ord("a")) & (first <= ord("z"))).all()
        assert len({bytes(row.tolist()) for row in first}) == 20 and all(len(set(row.tolist())) == 10 for row in first)
        assert (planted[:, [LEAD - 1, LEAD + LETTERS, LEAD + distance - 1]] == ord(" ")).all()
        assert bytes(planted[0, : LEAD - 1].tolist()) in TEXT.tobytes()
        assert (plant(TEXT, distance, 20, seed=0)[0] == planted).all()
        assert (plant(TEXT, distance, 20, seed=1)[0] != planted).any()
    near, far = (plant(TEXT, distance, 20, seed=0)[0][:, LEAD : LEAD + LETTERS] for distance in (16, 100))
    assert (near != far).any(axis=1).all()  # other words for another distance


def test_rows_at_once_do_not_matter(monkeypatch):
    whole = copying(Copier(reach=70), TEXT, (32,), trials=5)
    monkeypatch.setattr("headcount.measure.score.FED_AT_ONCE", 1)
    monkeypatch.setattr("headcount.measure.score.SEGMENT", 11)
    pieces = copying(Copier(reach=70), TEXT, (32,), trials=5)
    assert np.allclose(whole.with_first, pieces.with_first) and np.allclose(whole.without, pieces.without)


def test_what_does_not_fit_is_refused():
    with pytest.raises(RequestError, match="at least 16"):
        distances(15)
    with pytest.raises(RequestError, match="needs"):
        copying(Copier(reach=9), TEXT[:100], (64,), trials=2)
    assert copying(Copier(reach=9), TEXT[:114], (64,), trials=2).gain.shape == (1, 2)

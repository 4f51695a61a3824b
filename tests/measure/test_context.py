"""Nats by context against a loop that feeds exactly so many bytes to an empty state."""

import numpy as np
import pytest
import torch

from headcount.errors import RequestError
from headcount.measure import score
from headcount.measure.context import at_context, doubling, fixed_positions, nats_by_context, room
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from tests.conftest import make_text

TEXT = np.frombuffer(make_text(400), dtype=np.uint8)


class BeginsAnew(ShaRnn):
    """A model with absolute positions would begin a new window after 6 bytes; this one refuses to be fed more."""

    restarts_after = 6

    def advance(self, tokens, state):
        assert tokens.shape[1] <= 6
        return super().advance(tokens, state)


def make(cls=ShaRnn, **settings):
    torch.manual_seed(1)
    return cls(ShaRnnConfig(**{"width": 16, "blocks": 2, "attention": (0,), "window": 9, **settings})).double().eval()


@torch.no_grad()
def one_by_one(model, positions, fed):
    nats = []
    for t in positions.tolist():
        state = model.start(1)
        for byte in TEXT[t - fed : t].tolist():
            hidden, state = model(torch.tensor([[byte]]), state)
        nats.append(model.head.nll(hidden, torch.tensor([[int(TEXT[t])]])).item())
    return np.array(nats)


def test_a_context_of_c_is_exactly_c_bytes(monkeypatch):
    model, positions, contexts = make(), fixed_positions(len(TEXT), 40, 13), (1, 2, 7, 9, 10, 40)
    expected = np.stack([one_by_one(model, positions, c) for c in contexts])
    found = nats_by_context(model, TEXT, positions, contexts)
    assert found.shape == (6, 13) and np.abs(found - expected).max() < 1e-10
    monkeypatch.setattr(score, "SEGMENT", 7)  # fed in pieces, and few rows at once
    monkeypatch.setattr(score, "FED_AT_ONCE", 30)
    assert np.abs(nats_by_context(model, TEXT, positions, contexts) - expected).max() < 1e-10


def test_what_stands_before_the_context_does_not_matter_and_what_is_in_it_does():
    model, position = make(), np.array([100])
    for place, same in ((84, True), (85, False), (99, False)):
        other = TEXT.copy()
        other[place] ^= 1
        found = at_context(model, other, position, 15)
        assert (found == at_context(model, TEXT, position, 15)).all() == same, place


def test_a_model_that_begins_anew_is_fed_the_last_of_a_longer_context():
    model, positions, told = make(BeginsAnew), fixed_positions(len(TEXT), 64, 5), []
    found = nats_by_context(model, TEXT, positions, (4, 6, 7, 64), told.append)
    expected = np.stack([one_by_one(model, positions, fed) for fed in (4, 6, 6, 6)])
    assert np.abs(found - expected).max() < 1e-10
    assert told == [4, 6]  # what it is fed is measured once


def test_a_rule_that_refuses_long_segments_gets_short_ones():
    model = make(window_rule="segment")
    found = at_context(model, TEXT, fixed_positions(len(TEXT), 40, 3), 40)
    assert found.shape == (3,) and np.isfinite(found).all()


def test_positions_are_fixed_distinct_and_spread():
    for size, most, count in ((100, 10, 90), (5_000, 4_096, 100), (10_000_000, 4_096, 2_048)):
        places = fixed_positions(size, most, count)
        assert (places == fixed_positions(size, most, count)).all()
        assert len(set(places.tolist())) == count and places[0] >= most and places[-1] < size
        assert (np.diff(places) > 0).all() and np.diff(places).max() <= 2 * -(-(size - most) // count)
    assert (fixed_positions(10_000, 10, 50, seed=1) != fixed_positions(10_000, 10, 50)).any()


def test_contexts_double():
    assert doubling(1) == (1,) and doubling(8) == (1, 2, 4, 8) and doubling(4_096)[-1] == 4_096
    assert doubling(10) == (1, 2, 4, 8, 10) and len(doubling(4_096)) == 13


def test_room_is_what_was_asked_for_or_what_fits():
    assert room(1_000_000, None, None) == (4_096, 2_048)
    assert room(1_000, None, None) == (256, 744) and room(1_000, None, 10) == (256, 10)
    assert room(1_000, 999, None) == (999, 1) and room(2, None, None) == (1, 1)
    for size, most, count in ((1, None, None), (100, 100, None), (100, 0, None), (100, 50, 51), (100, 50, 0)):
        with pytest.raises(RequestError):
            room(size, most, count)

"""Looking inside: the weights are the ones that attention uses; spans and units are the ones there are."""

import numpy as np
import pytest
import torch

from headcount.errors import RequestError
from headcount.layers import attend as attending
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.text.tokens import Bytes
from headcount.use import inspect
from headcount.use.load import LanguageModel, Saved
from tests.conftest import make_text


def model(**settings):
    torch.manual_seed(0)
    made = ShaRnn(ShaRnnConfig(**{"width": 16, "blocks": 2, "window": 30, **settings}))
    return LanguageModel(Saved(made, "sha-rnn", {}, Bytes()), "m", "cpu")


@pytest.mark.parametrize("rule", ["exact", "segment"])
def test_the_weights_are_the_ones_that_attention_uses(rule, monkeypatch):
    """Row sums are 1, nothing ahead or beyond the window, and the mixture that follows from them is the layer's."""
    lm = model(attention=(0, 1), window_rule=rule)
    real, mixtures = attending.attend, []

    def kept(query, rows, *rest):
        mixtures.append((rows, real(query, rows, *rest)))
        return mixtures[-1][1]

    monkeypatch.setattr("headcount.models.sha_rnn.attend", kept)
    tokens, state = torch.randint(0, 256, (1, 60)), lm.model.start(1)
    for begin in range(0, 60, 20):
        mixtures.clear()
        weights, state = lm.model.look_back(tokens[:, begin : begin + 20], state)
        assert len(weights) == 2
        for found, (rows, mixture) in zip(weights, mixtures, strict=True):
            assert torch.allclose(found.sum(-1), torch.ones(()))
            assert torch.allclose(found @ rows, mixture, atol=1e-5)
    assert not any(module._forward_hooks for module in lm.model.modules())


def test_heads_say_where_they_look():
    text = make_text(300)
    head, *none = inspect.heads(model(attention=(1,)), text)
    assert not none and len(head.places) == len(text)
    assert head.places[0] == [(0, pytest.approx(1))]  # the first byte has only its own row
    for at, places in enumerate(head.places):
        assert all(0 <= distance <= min(at, 29) for distance, _ in places)
        assert [w for _, w in places] == sorted((w for _, w in places), reverse=True)
    assert len(head.distances) == 30 and head.distances.sum() == pytest.approx(1)
    with pytest.raises(RequestError, match="no attention"):
        inspect.heads(model(attention=()), text)


@pytest.mark.parametrize("rule", ["exact", "segment"])
def test_what_an_even_spread_would_give(rule):
    """By hand: byte t sees t + 1 rows until the window is full. Weights that are even give it."""
    text, window = make_text(300), 200
    (head,) = inspect.heads(model(attention=(1,), window=window, window_rule=rule), text)
    assert head.even.sum() == pytest.approx(1) and len(head.even) == len(head.distances)
    assert (np.diff(head.even) <= 1e-12).all()
    if rule == "exact":
        by_hand = [sum(1 / min(t + 1, window) for t in range(d, len(text))) / len(text) for d in range(window)]
        assert np.allclose(head.even, by_hand)
    weights = np.tril(np.ones((40, 40), np.float32)) / np.arange(1, 41, dtype=np.float32)[:, None]
    spread = inspect._head("it", bytes(40), [weights], 8)
    assert np.allclose(spread.even, spread.distances)


def test_heads_are_named_by_their_blocks_as_the_recipe_counts_them():
    text = make_text(40)
    assert [head.name for head in inspect.heads(model(attention=(0, 1)), text)] == ["block 0", "block 1"]
    assert [head.name for head in inspect.heads(model(attention=(1,)), text)] == ["block 1"]
    several = TransformerXL(TransformerXLConfig(width=8, layers=2, heads=2, inner=8, window=30))
    found = inspect.heads(LanguageModel(Saved(several, "transformer-xl", {}, Bytes()), "m", "cpu"), text)
    assert [head.name for head in found] == [f"block {i}, head {j}" for i in (0, 1) for j in (0, 1)]


def test_many_heads_keep_fewer_places_but_never_too_few(monkeypatch):
    text, lm = make_text(200), model(attention=(0, 1))
    for places, kept in ((10**6, 24), (2 * 200 * 11, 11), (1, 8)):
        monkeypatch.setattr(inspect, "PLACES", places)
        assert [len(head.places[-1]) for head in inspect.heads(lm, text)] == [kept, kept]


def test_copied_spans_by_example():
    """At bytes 10 … 15 the head reads ten back, where the same stands; elsewhere it reads its own row."""
    text = b"0123456789012345xx"
    places = [[(10, 0.5)] if 10 <= at < 16 else [(0, 1.0)] for at in range(len(text))]
    assert inspect._copied(text, places) == [inspect.Span(begin=10, source=0, length=6, weight=0.5)]
    other = b"0123456789ABCDEFxx"
    assert inspect._copied(other, places) == []  # it looked there, but something else followed
    to_the_end = [[(4, 0.5)] if at >= 4 else [(0, 1.0)] for at in range(8)]
    assert inspect._copied(b"abcdabcd", to_the_end) == [inspect.Span(4, 0, 4, 0.5)]


def test_a_unit_that_follows_a_feature_is_found(monkeypatch):
    text = make_text(400)
    lm = model(attention=())
    seen = []

    def planted(state):
        """Unit 3 holds the column; the others are noise."""
        column = len(seen) - 1
        byte = text[column] if column >= 0 else 0
        seen.append(0 if byte == ord("\n") or not seen else seen[-1] + 1)
        values = torch.randn(1, 8, generator=torch.Generator().manual_seed(len(seen)))
        values[0, 3] = seen[-1] / 100
        return {"block 0": values}

    monkeypatch.setattr(lm.model, "units", planted)
    best = inspect.units(lm, text)[0]
    assert (best.layer, best.number, best.feature) == ("block 0", 3, "column")
    assert best.correlation > 0.95 and len(best.values) == len(text)


def test_units_are_the_cells_after_each_byte():
    lm, text = model(attention=()), make_text(50)
    found = inspect.units(lm, text)
    assert found and len({(u.layer, u.number) for u in found}) == len(found)
    state = lm.model.start(1)
    with torch.inference_mode():
        _, state = lm.model(torch.tensor([[lm.tokens.start, *text]]), state)
    for unit in found:
        block = int(unit.layer.split()[1])
        assert unit.values[-1] == pytest.approx(state.blocks[block].lstm.c.tanh()[0, unit.number].item(), abs=1e-5)
        assert np.abs(unit.values).max() < 1

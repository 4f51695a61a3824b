"""What an evaluation may ask of a Transformer-XL (window, clamp, rule), and the distances it keeps for it."""

import pytest
import torch

from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from tests.models.test_transformer_xl import SMALL, build, tokens


@torch.no_grad()
def test_clamp_can_be_set_for_evaluation_and_touches_only_positions():
    model = build(window=40)
    text = tokens()
    own, _ = model(text, model.start(2))
    clamped, _ = model(text, model.start(2, clamp=5))
    assert own[:, :6].equal(clamped[:, :6]) and not torch.allclose(own[:, 6:], clamped[:, 6:])
    always = TransformerXL(TransformerXLConfig(**{**SMALL, "window": 40, "clamp": 5})).double()
    always.load_state_dict(model.state_dict())
    assert always.eval()(text, always.start(2))[0].equal(clamped)


@torch.no_grad()
@pytest.mark.parametrize("asked", [3, 9])
def test_a_clamp_that_is_asked_for_comes_before_the_models_own(asked):
    model, free, text = build(window=40, clamp=5), build(window=40), tokens()
    assert model(text, model.start(2, clamp=asked))[0].equal(free(text, free.start(2, clamp=asked))[0])
    own = model(text, model.start(2))[0]
    assert own.equal(free(text, free.start(2, clamp=5))[0])
    assert not torch.allclose(own, model(text, model.start(2, clamp=asked))[0])


@torch.no_grad()
def test_the_rule_can_be_exact_for_evaluation():
    model, exact = build(window_rule="memory"), build()
    text = tokens()
    assert model(text, model.start(2, rule="exact"))[0].equal(exact(text, exact.start(2))[0])
    assert not torch.allclose(model(text, model.start(2))[0], exact(text, exact.start(2))[0])


@torch.no_grad()
def test_an_exact_window_has_at_least_the_query_itself():
    model = build(window=0, window_rule="memory")
    hidden, _ = model(tokens(), model.start(2, rule="exact"))
    alone, _ = model(tokens()[:, 5:6], model.start(2))
    assert (hidden[:, 5:6] - alone).abs().max() < 1e-12


@torch.no_grad()
def test_projected_positions_are_kept_once_for_all_streams(monkeypatch):
    model = build()
    _, state = model(tokens(batch=5), model.start(5))
    made = []
    project = type(model.layers[0].attention).project
    monkeypatch.setattr(type(model.layers[0].attention), "project", lambda *a: made.append(1) or project(*a))
    for step in range(10):
        _, state = model(tokens(batch=5)[:, step : step + 1], state)
    assert not made
    assert state.projected.tables[0].shape[0] == 2  # heads, and no stream


@torch.no_grad()
@pytest.mark.parametrize(("rule", "most"), [("exact", 42), ("memory", 43)])
def test_no_more_distances_are_kept_than_a_window_and_a_segment_can_see(rule, most):
    model, state = build(), build().start(2, window=40, rule=rule)
    for _ in range(20):
        _, state = model(tokens()[:, :3], state)
    assert state.projected.tables[0].shape[1] == most
    for length in (1, 3, 2):  # a shorter segment needs no others
        _, state = model(tokens()[:, :length], state)
        assert state.projected.tables[0].shape[1] == most
    _, state = model(tokens()[:, :11], state)
    assert state.projected.tables[0].shape[1] == most + 8

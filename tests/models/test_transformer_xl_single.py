"""Transformer-XL one byte at a time in NumPy: the same numbers as in torch, when this way is taken, and no copies."""

import numpy as np
import pytest
import torch

from headcount.models import transformer_xl_single as module
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig

SMALL = {"vocabulary": 30, "width": 8, "layers": 2, "heads": 2, "inner": 12, "window": 6, "init_std": 0.3}
LENGTH = 20


def build(**changes):
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(**{**SMALL, **changes})).double().eval()
    with torch.no_grad():  # zeros and ones hide mistakes
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def tokens(batch=1):
    return torch.randint(0, 30, (batch, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def calls(monkeypatch):
    """How many layers were passed this way."""
    made, run = [], module.Layer.__call__
    monkeypatch.setattr(module.Layer, "__call__", lambda *given: made.append(1) or run(*given))
    return made


def byte_by_byte(model, text, state):
    pieces = []
    for t in range(text.shape[1]):
        hidden, state = model(text[:, t : t + 1], state)
        pieces.append(hidden)
    return torch.cat(pieces, dim=1), state


@torch.no_grad()
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "final_norm": True},
        {"shared_biases": False, "head_width": 5},
        {"memory_start": "zeros"},
        {"window": 3, "clamp": 2},
        {"window": 40, "window_rule": "memory"},
        {"cutoffs": (10, 20), "division": 2},
        {"dropout": 0.5, "attention_dropout": 0.5},
    ],
    ids=str,
)
def test_it_gives_the_same_numbers(changes, calls):
    model, text = build(**changes), tokens()
    whole, _ = model(text, model.start(1))
    hidden, state = byte_by_byte(model, text, model.start(1))
    assert len(calls) == 2 * (LENGTH - 1)  # the first byte turns layer inputs into keys and values
    assert hidden.dtype == whole.dtype and (hidden - whole).abs().max() < 1e-10
    again, _ = model(text[:, :5], state.clone())  # and leaves the state that torch goes on with
    expected, _ = model(torch.cat([text, text[:, :5]], dim=1), model.start(1))
    assert (again - expected[:, -5:]).abs().max() < 1e-10


@torch.no_grad()
@pytest.mark.parametrize(
    ("changes", "batch"),
    [({"positions": "shaw"}, 1), ({"positions": "learned"}, 1), ({"positions": "sinusoid"}, 1), ({}, 2)],
    ids=str,
)
def test_the_others_go_the_general_way(changes, batch, calls):
    model = build(**changes)
    byte_by_byte(model, tokens(batch), model.start(batch))
    assert not calls


def test_gradients_and_dropout_go_it_too(calls):
    model = build(dropout=0.5)
    byte_by_byte(model, tokens(), model.start(1))
    with torch.no_grad():
        byte_by_byte(model.train(), tokens(), model.start(1))
        byte_by_byte(build(attention_dropout=0.5).train(), tokens(), model.start(1))
    assert not calls
    with torch.no_grad():
        byte_by_byte(build().train(), tokens(), model.start(1))
    assert calls


@torch.no_grad()
def test_layers_are_prepared_once_for_a_state_and_its_branches(monkeypatch):
    model, made = build(), []
    prepare = module.prepare
    monkeypatch.setattr(module, "prepare", lambda *given: made.append(1) or prepare(*given))
    _, state = byte_by_byte(model, tokens(), model.start(1))
    _, state = model(tokens()[:, :4], state)  # a longer segment between
    byte_by_byte(model, tokens(), state.clone())
    assert len(made) == 1
    byte_by_byte(model, tokens(), model.start(1))
    assert len(made) == 2


@torch.no_grad()
def test_matrices_and_rows_of_the_memory_are_read_where_they_lie(monkeypatch):
    model, seen = build(), []
    _, state = byte_by_byte(model, tokens(), model.start(1))
    layer, plain = state.single[0], model.layers[0]
    for ours, theirs in (
        (layer.up, plain.up.weight),
        (layer.down, plain.down.weight),
        (layer.attention.query, plain.attention.query.weight),
        (layer.attention.key_value, plain.attention.key_value.weight),
        (layer.attention.out, plain.attention.out.weight),
    ):
        assert np.shares_memory(ours, theirs.numpy())
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda *given: seen.extend(given) or matmul(*given))
    _, after = model(tokens()[:, :1], state)
    for memory, table in zip(after.layers, after.projected.tables, strict=True):
        for large in (memory.buffer, table):
            assert any(np.shares_memory(given, large.numpy()) for given in seen)


@torch.no_grad()
def test_a_new_start_sees_the_weights_of_its_moment():
    model, text = build(), tokens()
    before, _ = byte_by_byte(model, text, model.start(1))
    for parameter in model.parameters():
        parameter.data.mul_(0.9)  # behind autograd's back
    after, _ = byte_by_byte(model, text, model.start(1))
    expected, _ = model(text, model.start(1))
    assert (after - expected).abs().max() < 1e-10 and not torch.allclose(before, after)

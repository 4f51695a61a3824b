"""Heads with keys and values of their own: the fused and the written-out way against the equation."""

import pytest
import torch

from headcount.layers import multihead
from headcount.layers.dropout import LEVELS, apply_kept
from headcount.layers.multihead import attend_heads, head_weights


def drawn(length, rows, dtype=torch.float64):
    torch.manual_seed(4)
    return (torch.randn(2, 3, n, 5, dtype=dtype, requires_grad=True) for n in (length, rows, rows))


def plain(query, keys, values, factors=1.0):
    """Query t of T over S rows sees rows 0 … S - T + t."""
    length, rows = query.shape[-2], keys.shape[-2]
    scores = query @ keys.transpose(-1, -2) / 5**0.5
    for t in range(length):
        scores[..., t, rows - length + t + 1 :] = -torch.inf
    return (torch.softmax(scores, dim=-1) * factors) @ values


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(("length", "rows"), [(1, 1), (1, 7), (7, 7), (4, 7), (2, 7)])
def test_queries_belong_to_the_last_rows(length, rows, gradients, monkeypatch):
    monkeypatch.setattr(multihead, "BLOCK", 3)
    query, keys, values = given = list(drawn(length, rows))
    with torch.set_grad_enabled(gradients):
        found = attend_heads(query, keys, values)
    assert (found - plain(query, keys, values)).abs().max() < 1e-12
    assert not gradients or torch.autograd.gradcheck(attend_heads, given)
    weights = head_weights(query, keys)
    assert weights.shape == (2, 3, length, rows)
    assert (weights @ values - plain(query, keys, values)).abs().max() < 1e-12


@pytest.mark.parametrize("block", [2, 128])
@pytest.mark.parametrize(("length", "rows"), [(7, 7), (4, 7), (1, 3)])
def test_dropout_falls_on_the_weights_and_gradients_follow_it(length, rows, block, monkeypatch):
    monkeypatch.setattr(multihead, "BLOCK", block)
    query, keys, values = given = list(drawn(length, rows))
    kept, drawn_rows = (torch.rand(6, length, rows) < 0.7).to(torch.uint8), 0

    def draw_kept(shape, p):
        nonlocal drawn_rows
        begin, drawn_rows = drawn_rows, (drawn_rows + shape[1]) % length
        return kept[:, begin : begin + shape[1], : shape[2]]

    monkeypatch.setattr(multihead, "draw_kept", draw_kept)
    factors = apply_kept(torch.ones((), dtype=torch.float64), kept, 0.3).view(2, 3, length, rows)
    assert set(factors.unique().tolist()) == {0.0, LEVELS / (LEVELS - round(0.3 * LEVELS))}
    expected, found = plain(query, keys, values, factors), attend_heads(query, keys, values, 0.3)
    assert (found - expected).abs().max() < 1e-12
    upper = torch.randn_like(found)
    for ours, theirs in zip(
        torch.autograd.grad(found, given, upper), torch.autograd.grad(expected, given, upper), strict=True
    ):
        assert (ours - theirs).abs().max() < 1e-12
    assert torch.autograd.gradcheck(lambda *x: attend_heads(*x, 0.3), given)


def test_without_gradients_dropout_is_there_too():
    query, keys, values = drawn(6, 6, torch.float32)
    with torch.no_grad():
        assert not torch.allclose(attend_heads(query, keys, values, 0.5), attend_heads(query, keys, values))

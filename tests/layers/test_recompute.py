"""Layers that run twice: the same numbers and gradients, a few streams at a time, and little that is kept."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.layers import recompute
from headcount.layers.dropout import dropout


def build():
    torch.manual_seed(0)
    up, down = torch.nn.Linear(4, 50).double(), torch.nn.Linear(50, 4).double()

    def layer(x, rows):
        return x + down(torch.tanh(up(rows))).mean(1, keepdim=True)

    return layer, [*up.parameters(), *down.parameters()]


def draw(streams=5):
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(streams, length, 4, dtype=torch.float64, generator=generator).requires_grad_() for length in (2, 3)
    ]


def gradients(run, weights, inputs):
    out = run(*inputs)
    return [out, *torch.autograd.grad(out.square().sum(), [*weights, *inputs])]


@settings(deadline=None)
@given(streams=st.integers(1, 6), at_once=st.integers(1, 80))
def test_however_streams_are_divided_the_numbers_are_the_same(streams, at_once):
    layer, weights = build()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recompute, "AT_ONCE", at_once)
        found = gradients(lambda *given: recompute.run_twice(layer, *given), weights, draw(streams))
    for one, other in zip(found, gradients(layer, weights, draw(streams)), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(("at_once", "sizes"), [(1, [1] * 5), (24, [2, 2, 1]), (36, [3, 2]), (60, [5]), (1 << 20, [5])])
def test_streams_run_a_few_at_a_time_and_twice(monkeypatch, at_once, sizes):
    monkeypatch.setattr(recompute, "AT_ONCE", at_once)
    layer, _ = build()
    seen = []
    out = recompute.run_twice(lambda x, rows: seen.append(len(x)) or layer(x, rows), *draw())
    assert seen == sizes
    out.sum().backward()
    assert sorted(seen) == sorted(2 * sizes)


def test_dropout_falls_on_the_same_elements_the_second_time(monkeypatch):
    monkeypatch.setattr(recompute, "AT_ONCE", 24)
    x, rows = draw()
    out = recompute.run_twice(lambda x, rows: dropout(x, 0.5, True) * 1.0, x, rows)
    out.sum().backward()
    assert torch.allclose(out, x * x.grad) and 0 < (x.grad == 0).sum() < x.numel()


def test_nothing_wide_waits_for_the_backward_pass():
    layer, _ = build()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape[-1]) or tensor, lambda t: t):
        recompute.run_twice(layer, *draw())
        assert 50 not in kept
        layer(*draw())
        assert 50 in kept

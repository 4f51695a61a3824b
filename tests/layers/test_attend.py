"""Attention over shared rows: gradients by differences, and agreement with torch's kernel."""

import math

import pytest
import torch
import torch.nn.functional as F

from headcount.layers import streams
from headcount.layers.attend import attend


def inputs(learnt=3):
    torch.manual_seed(0)
    query, old = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 7 - learnt, 5, dtype=torch.float64)
    mask = torch.ones(3, 7, dtype=torch.bool).tril(4) & torch.ones(3, 7, dtype=torch.bool).triu(1)
    return query.requires_grad_(), old, torch.randn(2, learnt, 5, dtype=torch.float64).requires_grad_(), mask


@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("learnt", [3, 7])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("at_once", [1, streams.AT_ONCE])
def test_gradients(p, learnt, masked, keep, at_once, monkeypatch):
    monkeypatch.setattr(streams, "AT_ONCE", at_once)
    query, old, new, mask = inputs(learnt)

    def looked_up(query, new):
        torch.manual_seed(1)  # the same masks every time
        return attend(query, torch.cat([old, new], 1), new, mask if masked else None, p, keep)

    assert torch.autograd.gradcheck(looked_up, (query, new))


def test_without_keep_no_weights_wait_for_the_backward_pass():
    query, old, new, mask = inputs()
    rows = torch.cat([old, new], 1)
    of_pairs = {
        keep: sum(t.shape == (2, 3, 7) for t in attend(query, rows, new, mask, 0.0, keep).grad_fn.saved_tensors)
        for keep in (True, False)
    }
    assert of_pairs == {True: 1, False: 0}


def test_the_kernel_without_gradients_computes_the_same():
    query, old, new, mask = inputs()
    rows = torch.cat([old, new], 1)
    written_out = attend(query, rows, new, mask)
    with torch.no_grad():
        fused = attend(query, rows, new, mask)
    assert torch.allclose(written_out, fused, atol=1e-12, rtol=0)


def test_dropout_falls_on_weights_and_values_and_keeps_the_mean():
    query, old, new, mask = inputs()
    rows = torch.cat([old, new], 1)
    torch.manual_seed(0)
    drawn = torch.stack([attend(query, rows, new, mask, 0.3).detach() for _ in range(4000)])
    hidden = torch.where(mask, 0.0, -math.inf)
    weights = F.softmax(query @ rows.transpose(1, 2) + hidden, dim=-1).detach()
    assert torch.allclose(drawn.mean(0), weights @ rows.detach(), atol=0.15)
    # Two independent masks of keep k: the mean of the squares of one product is (w·v)²/k² …
    square, mean = (weights**2) @ rows.detach() ** 2, weights @ rows.detach()
    expected = mean**2 + square * (1 / 0.7**2 - 1)
    assert torch.allclose((drawn**2).mean(0), expected, rtol=0.25, atol=0.15)

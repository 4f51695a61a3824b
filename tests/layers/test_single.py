"""One vector at a time: each layer against its module, and when this way is taken."""

import numpy as np
import pytest
import torch

from headcount.layers import single
from headcount.layers.norm import LayerNorm
from headcount.layers.recurrent import LSTM, LSTMState

WIDTH = 6


@pytest.fixture
def norm():
    torch.manual_seed(0)
    layer = LayerNorm(WIDTH, 1e-5).double()
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.normal_(layer.bias)
    return layer


@torch.no_grad()
def test_norms_fold_into_what_they_feed(norm):
    x, linear = torch.randn(WIDTH, dtype=torch.float64), torch.nn.Linear(WIDTH, 3).double()
    standard = single.standardised(single.array(x), norm.eps)
    assert np.allclose(single.Affine(norm)(standard), norm(x), atol=1e-12)
    assert np.allclose(single.Affine(norm, 0.5)(standard), 0.5 * norm(x), atol=1e-12)
    assert np.allclose(single.Linear(linear.weight, linear.bias)(single.array(x)), linear(x), atol=1e-12)
    assert np.allclose(single.Linear(linear.weight, linear.bias, norm)(standard), linear(norm(x)), atol=1e-12)


@torch.no_grad()
def test_a_step_of_the_lstm(norm):
    lstm = LSTM(WIDTH).double()
    x, h, c = (torch.randn(1, WIDTH, dtype=torch.float64) for _ in range(3))
    expected, after = lstm(norm(x)[None], LSTMState(h, c))
    y, state = single.LSTM(lstm, norm)(single.standardised(single.array(x[0]), norm.eps), LSTMState(h, c))
    assert np.allclose(y, expected[0, 0], atol=1e-12)
    assert torch.allclose(state.h, after.h, atol=1e-12) and torch.allclose(state.c, after.c, atol=1e-12)


def test_functions_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        extremes = np.array([-1e4, 0.0, 1e4], dtype=np.float32)
        assert single.sigmoid(extremes).tolist() == [0.0, 0.5, 1.0]
        assert single.softmax(extremes).tolist() == [0.0, 0.0, 1.0]
        assert single.softmax(np.stack([extremes, -extremes])).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


def test_where_it_applies():
    one, weight = torch.zeros(1, 1, dtype=torch.long), torch.zeros(2, 2)
    assert not single.applies(one, weight)  # gradients are on
    with torch.no_grad():
        assert single.applies(one, weight) and single.applies(one, weight.double())
        assert not single.applies(torch.zeros(2, 1, dtype=torch.long), weight)
        assert not single.applies(torch.zeros(1, 2, dtype=torch.long), weight)
        assert not single.applies(one, weight.bfloat16())
        assert not single.applies(one, torch.zeros(2, 2, device="meta"))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert not single.applies(one, weight)

"""The Boom layer: its equation, its gradients, slices that do not show."""

import pytest
import torch

from headcount.layers import boom as booms
from headcount.layers.boom import boom


def inputs(rows=5):
    torch.manual_seed(0)
    shapes = ((rows, 2, 3), (12, 3), (12,))
    return [torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.4])
def test_gradients_through_several_slices(p, recompute, monkeypatch):
    monkeypatch.setattr(booms, "ROWS", 4)

    def boomed(z, weight, bias):
        torch.manual_seed(1)
        return boom(z, weight, bias, p, recompute)

    assert torch.autograd.gradcheck(boomed, inputs())


def test_the_equation_with_gradients_and_without():
    z, weight, bias = inputs()
    u = z @ weight.T + bias
    u = u * torch.sigmoid(1.702 * u)
    expected = u[..., 0:3] + u[..., 3:6] + u[..., 6:9] + u[..., 9:12]
    assert torch.allclose(boom(z, weight, bias), expected, atol=1e-12, rtol=0)
    with torch.no_grad():
        assert torch.allclose(boom(z, weight, bias), expected, atol=1e-12, rtol=0)


def test_dropout_zeroes_wide_units_before_they_are_summed():
    z, weight, bias = (t.detach() for t in inputs())
    torch.manual_seed(0)
    drawn = torch.stack([boom(z.requires_grad_(), weight, bias, 0.5).detach() for _ in range(2000)])
    assert torch.allclose(drawn.mean(0), boom(z, weight, bias).detach(), atol=0.3)
    assert drawn[:, 0, 0, 0].unique().numel() == 2**4  # each of the four chunks is there or not

"""Dropout: how much falls, what it is scaled by, and that backward uses the same mask."""

import pytest
import torch

from headcount.layers.dropout import dropout


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_the_share_that_falls_and_the_scale_of_the_rest(p):
    torch.manual_seed(0)
    dropped = dropout(torch.ones(1000, 1001), p, training=True)
    assert (dropped == 0).float().mean().item() == pytest.approx(p, abs=0.002)  # five deviations of a million draws
    assert dropped.unique().tolist() == pytest.approx([0, 1 / (1 - p)], rel=1e-4)
    assert dropped.mean().item() == pytest.approx(1, abs=0.016)


def test_neighbours_fall_independently():
    """The four draws of one word are as unlike as any: no pair of places in a word agrees more often."""
    torch.manual_seed(0)
    kept = (dropout(torch.ones(400_000), 0.5, training=True) != 0).view(-1, 8).float()
    assert (torch.corrcoef(kept.T) - torch.eye(8)).abs().max().item() < 0.02


def test_gradients_pass_where_the_numbers_passed():
    x = torch.randn(37, 11, requires_grad=True)
    dropped = dropout(x, 0.3, training=True)
    dropped.sum().backward()
    assert torch.equal(dropped == 0, x.grad == 0)
    assert torch.allclose(dropped, x.detach() * x.grad)


def test_a_seed_decides_the_mask_and_outside_training_nothing_is_drawn():
    x = torch.ones(100)
    torch.manual_seed(1)
    first = dropout(x, 0.5, training=True)
    torch.manual_seed(1)
    assert dropout(x, 0.5, training=False) is x and dropout(x, 0.0, training=True) is x
    assert torch.equal(first, dropout(x, 0.5, training=True))

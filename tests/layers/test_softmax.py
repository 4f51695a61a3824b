"""The gradient of scores against the one that torch finds, in float64."""

import pytest
import torch

from headcount.layers.dropout import apply_kept
from headcount.layers.softmax import scores_gradient


@pytest.mark.parametrize("into", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.4])
def test_the_gradient_is_torchs(p, into):
    torch.manual_seed(2)
    scores = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    values = torch.randn(3, 6, 5, dtype=torch.float64)
    gradient = torch.randn(3, 4, 5, dtype=torch.float64)
    kept = (torch.rand(3, 4, 6) < 0.6).to(torch.uint8) if p else None
    weights = torch.softmax(scores, dim=-1)
    mixed = apply_kept(weights, kept, p) @ values
    (expected,) = torch.autograd.grad(mixed, scores, gradient)
    memory = torch.full((3, 30), torch.nan, dtype=torch.float64)
    place = memory[:, 3:27].view(3, 4, 6) if into else None
    through = (gradient * mixed).sum(-1, keepdim=True).detach()
    found = scores_gradient(gradient, through, values, weights.detach(), kept, p, place)
    assert (found - expected).abs().max() < 1e-14
    if into:
        assert torch.equal(place, found) and memory[:, :3].isnan().all() and memory[:, 27:].isnan().all()

"""Min-trust LAMB against vectors worked out by hand."""

import copy as copying
import math

import pytest
import torch

from headcount.learn.min_trust_lamb import MinTrustLamb


def step(weights, gradients, **options):
    """One parameter through some steps; gives the weights after each."""
    parameter = torch.nn.Parameter(torch.tensor(weights, dtype=torch.float64))
    optimiser = MinTrustLamb([parameter], **options)
    after = []
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimiser.step()
        after.append(parameter.detach().clone())
    return after


def test_first_step_by_hand():
    """g = (3, 4): m = 0.1·g, √v = √0.001·|g|, so u = √10 in each place up to eps; ‖u‖ = √20, ‖w‖ = 5."""
    (after,) = step([3.0, 4.0], [[3.0, 4.0]], lr=0.1, eps=1e-12, min_trust=0.0)
    u = 0.1 / math.sqrt(0.001)
    trust = 5 / (u * math.sqrt(2))
    torch.testing.assert_close(after, torch.tensor([3 - 0.1 * trust * u, 4 - 0.1 * trust * u], dtype=torch.float64))


def test_two_steps_without_bias_correction():
    g1, g2, w = 2.0, -1.0, 0.5
    first, second = step([w], [[g1], [g2]], lr=0.01, betas=(0.9, 0.999), eps=1e-6, min_trust=0.25)
    m, v = 0.1 * g1, 0.001 * g1**2
    u = m / (math.sqrt(v) + 1e-6)
    w1 = w - 0.01 * max(w / u, 0.25) * u
    m, v = 0.9 * m + 0.1 * g2, 0.999 * v + 0.001 * g2**2
    u = m / (math.sqrt(v) + 1e-6)
    w2 = w1 - 0.01 * max(abs(w1) / abs(u), 0.25) * u
    assert first.item() == pytest.approx(w1, rel=1e-12) and second.item() == pytest.approx(w2, rel=1e-12)


def test_the_floor():
    """‖w‖ = 0.01 is far below ‖u‖ = √10: the trust is the floor, not 0.003."""
    (after,) = step([0.01], [[1.0]], lr=1.0, eps=1e-12, min_trust=0.25)
    assert after.item() == pytest.approx(0.01 - 0.25 * math.sqrt(10), rel=1e-9)


def test_the_weight_norm_is_clipped_at_ten():
    (after,) = step([1000.0], [[1.0]], lr=1.0, eps=1e-12, min_trust=0.0)
    assert after.item() == pytest.approx(1000 - 10, rel=1e-12)  # trust·u is the clipped norm, in the direction of u


def test_there_is_no_upper_cap():
    (after,) = step([9.0], [[1e-9]], lr=1.0, eps=1e-6, min_trust=0.25)  # eps makes u tiny, trust is large
    assert after.item() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("weights", "gradient"), [([0.0], [2.0]), ([3.0], [0.0])])
def test_a_norm_of_zero_gives_a_trust_of_one(weights, gradient):
    (after,) = step(weights, [gradient], lr=0.5, eps=1e-6, min_trust=0.25)
    m, v = 0.1 * gradient[0], 0.001 * gradient[0] ** 2
    assert after.item() == pytest.approx(weights[0] - 0.5 * m / (math.sqrt(v) + 1e-6), rel=1e-12)


def test_decay_is_added_before_the_norm():
    (after,) = step([2.0], [[1.0]], lr=0.1, eps=1e-12, weight_decay=0.5, min_trust=0.0)
    u = 0.1 / (math.sqrt(0.001) + 1e-12) + 0.5 * 2
    assert after.item() == pytest.approx(2 - 0.1 * (2 / u) * u, rel=1e-12)
    (floored,) = step([2.0], [[1.0]], lr=0.1, eps=1e-12, weight_decay=0.5, min_trust=0.9)
    assert floored.item() == pytest.approx(2 - 0.1 * 0.9 * u, rel=1e-12)


def test_tensors_without_gradient_are_left_alone_and_the_state_dict_goes_round():
    one, other = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))
    optimiser = MinTrustLamb([one, other], lr=0.1)
    one.grad = torch.tensor([1.0, 2.0, 3.0])
    optimiser.step()
    assert (other == 1).all() and not optimiser.state[other]
    copy = torch.nn.Parameter(one.detach().clone())
    again = MinTrustLamb([copy, torch.nn.Parameter(torch.ones(2))], lr=0.1)
    again.load_state_dict(copying.deepcopy(optimiser.state_dict()))
    copy.grad = one.grad.clone()
    optimiser.step()
    again.step()
    assert one.equal(copy)


def test_the_floor_has_a_range():
    with pytest.raises(ValueError, match="min_trust"):
        MinTrustLamb([torch.nn.Parameter(torch.ones(1))], min_trust=1.0)

"""Attention by distance: pair by pair, forward and backward, in float64."""

import math

import pytest
import torch

from headcount.layers import relative
from headcount.layers.dropout import apply_kept
from headcount.layers.memory import seen
from headcount.layers.relative import attend_by_distance, distance_weights
from headcount.layers.relative_heads import as_bias

SIZES = [(1, 1), (1, 7), (4, 7), (7, 7)]
"""T queries over S rows."""


def drawn(length, rows, place_width=5):
    """Two streams of three heads: c, p, [keys; values], r."""
    torch.manual_seed(3)
    shapes = (2, 3, length, 5), (2, 3, length, place_width), (2, 6, rows, 5), (3, rows, place_width)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def hidden(length, rows, window=None):
    return as_bias(seen(length, rows, window, torch.device("cpu")), torch.zeros((), dtype=torch.float64))


def plain_weights(content, place, both, positions, window=None):
    """softmax over the keys that query i sees: key j lies δ = S - T + i - j back, and r has the farthest first."""
    (batch, heads, length, _), rows = content.shape, both.shape[2]
    weights = []
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                scores = []
                for j in range(rows):
                    back = rows - length + i - j
                    score = content.new_tensor(-math.inf)
                    if 0 <= back < (window or rows):
                        score = content[b, h, i] @ both[b, h, j] + place[b, h, i] @ positions[h, rows - 1 - back]
                    scores.append(score)
                weights.append(torch.softmax(torch.stack(scores), dim=0))
    return torch.stack(weights).view(batch, heads, length, rows)


def plain(content, place, both, positions, window=None, factors=1.0):
    return (plain_weights(content, place, both, positions, window) * factors) @ both[:, content.shape[1] :]


def gradients(out, given):
    torch.manual_seed(9)
    return torch.autograd.grad(out, given, torch.randn_like(out))


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("length", "rows"), SIZES)
def test_pair_by_pair(length, rows, window):
    window = None if length == 1 else window  # a single query sees all rows that are left to it
    given, hide = drawn(length, rows), hidden(length, rows, window)
    expected = plain(*given, window)
    with torch.no_grad():
        assert (attend_by_distance(*given, hide) - expected).abs().max() < 1e-12
        content, place, both, positions = given
        weights = distance_weights(content, place, both[:, :3], positions, hide)
        assert (weights - plain_weights(*given, window)).abs().max() < 1e-12
    for keep in (True, False):
        found = attend_by_distance(*given, hide, 0.0, keep)
        assert (found - expected).abs().max() < 1e-12
        for ours, theirs in zip(gradients(found, given), gradients(plain(*given, window), given), strict=True):
            assert (ours - theirs).abs().max() < 1e-12


def test_distances_may_have_another_width_than_keys():
    given, hide = drawn(4, 7, place_width=6), hidden(4, 7)
    expected, found = plain(*given), attend_by_distance(*given, hide)
    assert (found - expected).abs().max() < 1e-12
    for ours, theirs in zip(gradients(found, given), gradients(expected, given), strict=True):
        assert (ours - theirs).abs().max() < 1e-12


@pytest.mark.parametrize("keep", [True, False])
def test_by_differences(keep):
    hide = hidden(3, 5)
    assert torch.autograd.gradcheck(lambda *x: attend_by_distance(*x, hide, 0.0, keep), drawn(3, 5))


@pytest.mark.parametrize("keep", [True, False])
def test_dropout_falls_on_the_weights_and_gradients_follow_it(keep, monkeypatch):
    given, hide = drawn(4, 7), hidden(4, 7)
    kept = (torch.rand(2, 3, 4, 7) < 0.7).to(torch.uint8)
    waiting = list(kept)
    monkeypatch.setattr(relative, "draw_kept", lambda shape, p, device: waiting.pop(0))
    factors = apply_kept(torch.ones((), dtype=torch.float64), kept, 0.3)
    expected, found = plain(*given, factors=factors), attend_by_distance(*given, hide, 0.3, keep)
    assert not waiting and (found - expected).abs().max() < 1e-12
    for ours, theirs in zip(gradients(found, given), gradients(expected, given), strict=True):
        assert (ours - theirs).abs().max() < 1e-12


def test_without_keep_only_inputs_and_output_wait_for_the_backward_pass():
    given, hide = drawn(4, 7), hidden(4, 7)
    of_pairs = {
        keep: sum(t is not None and t.shape == (3, 4, 7) for t in found.grad_fn.saved_tensors)
        for keep in (True, False)
        for found in (attend_by_distance(*given, hide, 0.0, keep),)
    }
    assert of_pairs == {True: 2, False: 0}  # streams


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("length", "rows"), SIZES)
def test_both_ways_without_gradients_are_the_same(length, rows, window):
    """The one for other devices too."""
    given, hide = drawn(length, rows), hidden(length, rows, None if length == 1 else window)
    with torch.no_grad():
        one, other = relative._head_by_head(*given, hide), relative.fused(*given, hide)
    assert (one - other).abs().max() < 1e-12


def test_what_stood_in_memory_does_not_matter(monkeypatch):
    """The shifted matrix reaches over places that no product has written."""
    given, hide, made = drawn(4, 7), hidden(4, 7), torch.Tensor.new_empty

    def dirty(self, *shape):
        return made(self, *shape).fill_(math.nan)

    expected = plain(*given)
    monkeypatch.setattr(torch.Tensor, "new_empty", dirty)
    found = attend_by_distance(*given, hide)
    assert (found - expected).abs().max() < 1e-12
    for ours, theirs in zip(gradients(found, given), gradients(expected, given), strict=True):
        assert (ours - theirs).abs().max() < 1e-12
    with torch.no_grad():
        assert (attend_by_distance(*given, hide) - expected).abs().max() < 1e-12


def test_gradients_have_the_dtype_of_what_is_given_under_autocast():
    given = [tensor.detach().float().requires_grad_() for tensor in drawn(4, 7)]
    hide = hidden(4, 7).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = attend_by_distance(*given, hide)
    assert found.dtype == torch.float32
    expected = plain(*(tensor.detach().double() for tensor in given))
    assert (found - expected).abs().max() < 1e-5
    assert {gradient.dtype for gradient in gradients(found, given)} == {torch.float32}

"""Relative effective context length on arrays whose answer is known."""

import math

import numpy as np
import pytest

from headcount.measure.recl import Length, Walk, baseline, gain, hardest, held, lengths

WALK = Walk(start=100, step=100, most=1_000)


def flat(*courses, positions=10):
    """Losses that are the same at all positions: one function of the context for every model."""
    return lambda context: np.array([[course(context)] * positions for course in courses])


def falls_until(end, by=0.1, top=2.0):
    """A loss that falls by `by` nats every 100 bytes until `end`."""
    return lambda context: top - by * min(context, end) / 100


def test_a_model_reaches_as_far_as_it_gains():
    group = flat(falls_until(300), falls_until(500), falls_until(100))
    for share in (0.1, 0.5, 1.0):
        found = lengths(group, WALK, share)
        # The first has the baseline itself until 300; the second alone goes on; the third never gains.
        assert found == [Length(300, False), Length(500, False), Length(100, False)]


def test_it_depends_on_the_group():
    slow = falls_until(900)
    assert lengths(flat(slow), WALK, 1.0) == [Length(900, False)]
    better = falls_until(100, top=1.0)  # below all that the slow one ever reaches
    assert lengths(flat(slow, better), WALK, 1.0)[0] == Length(100, False)


def test_it_depends_on_start_and_step():
    def late(context):
        return 2.0 if context < 400 else 1.0

    assert lengths(flat(late), WALK, 1.0) == [Length(100, False)]
    assert lengths(flat(late), Walk(300, 100, 1_000), 1.0) == [Length(400, False)]
    assert lengths(flat(late), Walk(100, 300, 1_000), 1.0) == [Length(400, False)]


def test_who_still_gains_at_the_end_is_left_open_and_nothing_beyond_is_asked_for():
    asked = []

    def group(context):
        asked.append(context)
        return flat(falls_until(10_000), falls_until(200))(context)

    assert lengths(group, WALK, 1.0) == [Length(1_000, True), Length(200, False)]
    assert max(asked) == 1_000
    asked.clear()
    assert lengths(lambda c: group(c)[1:], WALK, 1.0) == [Length(200, False)] and max(asked) == 300


def test_the_threshold_is_one_hundredth_of_the_perplexity():
    above, below = -math.log1p(-0.0101), -math.log1p(-0.0099)
    assert lengths(flat(falls_until(700, by=above)), WALK, 1.0) == [Length(700, False)]
    assert lengths(flat(falls_until(700, by=below)), WALK, 1.0) == [Length(100, False)]


def test_the_hardest_positions_are_chosen_by_the_baseline():
    def group(context):
        losses = np.ones((1, 10))
        losses[0, 7] = 5 - 0.05 * min(context, 600) / 100  # one position in ten is hard, and only it gains
        return losses

    assert lengths(group, WALK, 0.1) == [Length(600, False)]
    assert lengths(group, WALK, 1.0) == [Length(100, False)]  # a tenth of 0.05 is not enough
    assert hardest(np.array([1.0, 3.0, 2.0, 3.0]), 0.5).tolist() == [1, 3]
    assert hardest(np.array([1.0, 3.0, 2.0]), 0.01).tolist() == [1]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_gain_is_the_formula(share):
    draw = np.random.default_rng(3)
    losses, longer = draw.gamma(2.0, size=(3, 200)), draw.gamma(1.8, size=200)
    base = [min(losses[i, t] for i in range(3)) for t in range(200)]
    assert baseline(losses).tolist() == base
    hard = sorted(range(200), key=lambda t: -base[t])[: round(share * 200)]
    before = sum(base[t] for t in hard) / len(hard)
    after = sum(min(base[t], longer[t]) for t in hard) / len(hard)
    expected = (math.exp(before) - math.exp(after)) / math.exp(before)
    assert gain(baseline(losses), longer, share) == pytest.approx(expected, rel=1e-12)


def test_nobody_reaches_beyond_what_it_holds():
    assert held(Length(100, False), 64) == Length(64, False)  # the walk began beyond it
    assert held(Length(300, False), 250) == Length(250, False) == held(Length(300, True), 250)
    assert held(Length(300, True), 300) == Length(300, False)
    assert held(Length(200, True), 250) == Length(200, True) == held(Length(200, True), None)


def test_a_gain_of_just_the_threshold_is_enough():
    group = flat(falls_until(300))
    one = gain(group(100)[0], group(200)[0], 1.0)
    assert lengths(group, Walk(100, 100, 1_000, threshold=one), 1.0)[0].context >= 200
    assert lengths(group, Walk(100, 100, 1_000, threshold=np.nextafter(one, 1.0)), 1.0) == [Length(100, False)]

"""Streams and segments: every byte once an epoch, in order, as a pure function of the step."""

import numpy as np
import pytest

from headcount.text.batches import Segments


def text(size):
    return np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.parametrize("lengths", ["fixed", "merity2019"])
def test_an_epoch_reads_every_byte_of_every_lane_once(lengths):
    data = text(1003)
    segments = Segments(data, streams=4, segment=17, lengths=lengths, seed=5)
    lanes = data[:1000].reshape(4, 250)
    steps = segments.steps_in(1)
    read = [segments.at(step) for step in range(steps)]
    assert [batch.fresh for batch in read] == [True] + [False] * (steps - 1)
    assert np.array_equal(np.concatenate([b.tokens[:, 1:] for b in read], axis=1), lanes)
    inputs = np.concatenate([b.tokens[:, :-1] for b in read], axis=1)
    assert np.array_equal(inputs[:, 1:], lanes[:, :-1]) and (inputs[:, 0] == 10).all()
    assert sum(b.predictions for b in read) == 1000
    assert segments.at(steps).fresh  # it wraps


def test_any_order_of_asking_gives_the_same():
    one = Segments(text(5000), streams=2, segment=50, lengths="merity2019", seed=1)
    other = Segments(text(5000), streams=2, segment=50, lengths="merity2019", seed=1)
    forwards = [one.at(step).tokens for step in range(120)]
    for step in reversed(range(120)):
        assert np.array_equal(other.at(step).tokens, forwards[step])


def test_published_lengths():
    segments = Segments(text(64), streams=1, segment=1024, lengths="merity2019", seed=0)
    drawn = np.array([segments._drawn(step) for step in range(4000)])
    assert drawn.max() == 1024 and drawn.min() > 480
    assert drawn.mean() == pytest.approx(996.3, abs=4)
    assert (drawn == 1024).mean() == pytest.approx(0.47, abs=0.04)
    assert (drawn < 600).mean() == pytest.approx(0.05, abs=0.015)


def test_steps_in_epochs():
    segments = Segments(text(1000), streams=2, segment=100)
    assert segments.steps_in(1) == 5 and segments.steps_in(3) == 15 and segments.steps_in(0.5) == 3
    assert segments.steps_in(2.2) == 11 and segments.steps_in(0.001) == 1


def test_a_text_shorter_than_its_segment():
    segments = Segments(text(9), streams=2, segment=100)
    assert segments.at(0).tokens.shape == (2, 5) and segments.at(1).fresh
    with pytest.raises(ValueError, match="streams"):
        Segments(text(3), streams=4, segment=1)

"""Streams and segments: every byte once an epoch, in order, as a pure function of the step."""

import numpy as np
import pytest

from headcount.tables import BatchesTable
from headcount.text.batches import Segments, Windows
from headcount.text.encoding import encode
from tests.conftest import as_bytes
from tests.text.kinds import SAMPLE, as_text, tokens_of


def text(size):
    return np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.parametrize("lengths", ["fixed", "merity2019"])
def test_an_epoch_reads_every_byte_of_every_lane_once(lengths):
    data = text(1003)
    segments = Segments(as_bytes(data), BatchesTable(streams=4, segment=17, lengths=lengths), seed=5)
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
    one = Segments(as_bytes(text(5000)), BatchesTable(streams=2, segment=50, lengths="merity2019"), seed=1)
    other = Segments(as_bytes(text(5000)), BatchesTable(streams=2, segment=50, lengths="merity2019"), seed=1)
    forwards = [one.at(step).tokens for step in range(120)]
    for step in reversed(range(120)):
        assert np.array_equal(other.at(step).tokens, forwards[step])


def test_published_lengths():
    segments = Segments(as_bytes(text(64)), BatchesTable(streams=1, segment=1024, lengths="merity2019"), seed=0)
    drawn = np.array([segments._drawn(step) for step in range(4000)])
    assert drawn.max() == 1024 and drawn.min() > 480
    assert drawn.mean() == pytest.approx(996.3, abs=4)
    assert (drawn == 1024).mean() == pytest.approx(0.47, abs=0.04)
    assert (drawn < 600).mean() == pytest.approx(0.05, abs=0.015)


def test_steps_in_epochs():
    segments = Segments(as_bytes(text(1000)), BatchesTable(streams=2, segment=100), seed=0)
    assert segments.steps_in(1) == 5 and segments.steps_in(3) == 15 and segments.steps_in(0.5) == 3
    assert segments.steps_in(2.2) == 11 and segments.steps_in(0.001) == 1


def test_a_text_shorter_than_its_segment():
    segments = Segments(as_bytes(text(9)), BatchesTable(streams=2, segment=100), seed=0)
    assert segments.at(0).tokens.shape == (2, 5) and segments.at(1).fresh
    with pytest.raises(ValueError, match="streams"):
        Segments(as_bytes(text(3)), BatchesTable(streams=4, segment=1), seed=0)


def test_a_lookahead_reads_on_and_leaves_no_byte_out_but_the_last():
    data = text(1000)
    segments = Segments(as_bytes(data), BatchesTable(streams=4, segment=17), lookahead=2)
    lanes = data.reshape(4, 250)
    read = [segments.at(step) for step in range(segments.steps_in(1))]
    assert np.array_equal(np.concatenate([b.tokens[:, 1:-1] for b in read], axis=1), lanes[:, :-1])
    assert np.array_equal(np.concatenate([b.tokens[:, 2:] for b in read], axis=1), lanes[:, 1:])
    assert sum(b.predictions for b in read) == 4 * 249


def test_windows_are_a_pure_function_of_seed_and_step():
    data, table = text(5000), BatchesTable(kind="windows", streams=6, segment=40)
    windows, again = (
        Windows(as_bytes(data), table, seed=3, lookahead=2),
        Windows(as_bytes(data), table, seed=3, lookahead=2),
    )
    forwards = [windows.at(step) for step in range(50)]
    for step in reversed(range(50)):
        assert np.array_equal(again.at(step).tokens, forwards[step].tokens)
    assert not np.array_equal(Windows(as_bytes(data), table, seed=4, lookahead=2).at(0).tokens, forwards[0].tokens)
    whole = data.tobytes()
    for batch in forwards:
        assert batch.tokens.shape == (6, 42) and batch.fresh and batch.predictions == 240
        assert all(bytes(row.astype(np.uint8)) in whole for row in batch.tokens)
    assert windows.steps_in(2) == round(2 * 5000 / 240)


def test_windows_reach_both_ends_of_a_text():
    data = np.arange(12, dtype=np.uint8)
    windows = Windows(as_bytes(data), BatchesTable(kind="windows", streams=4, segment=8), seed=0)
    seen = np.concatenate([windows.at(step).tokens for step in range(30)])
    assert seen.min() == 0 and seen.max() == 11
    short = Windows(as_bytes(data), BatchesTable(kind="windows", streams=4, segment=100), seed=0)
    assert short.at(0).tokens.shape == (4, 12)
    with pytest.raises(ValueError, match="too few"):
        Windows(as_bytes(data[:1]), BatchesTable(kind="windows"))


@pytest.mark.parametrize("kind", ["characters", "words", "wordpieces", "text8"])
def test_a_step_knows_how_many_bytes_its_tokens_stand_for(kind):
    content = b"the cat sat on a mat " * 200 if kind == "text8" else SAMPLE
    encoded = encode(as_text(content), tokens_of(kind))
    segments = Segments(encoded, BatchesTable(streams=3, segment=50))
    read = [segments.at(step) for step in range(segments.steps_in(1))]
    used = len(encoded.ids) // 3 * 3
    spans = None if encoded.spans is None else encoded.spans[:used]
    assert sum(batch.predictions for batch in read) == used
    assert sum(batch.bytes for batch in read) == encoded.bytes_of(encoded.ids[:used], spans)
    assert (read[0].tokens[:, 0] == tokens_of(kind).start).all()
    windows = Windows(encoded, BatchesTable(kind="windows", streams=2, segment=20), seed=1)
    for batch in (windows.at(step) for step in range(5)):
        assert batch.predictions == 40 and batch.tokens.max() < tokens_of(kind).vocabulary
        if encoded.spans is None:
            assert batch.bytes == sum(len(tokens_of(kind).decode(row[1:])) for row in batch.tokens)

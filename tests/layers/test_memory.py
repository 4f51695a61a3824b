"""The memory: which rows a query sees, however they arrive; a buffer that copies one row per row."""

import pytest
import torch

from headcount.layers.memory import Memory, seen


def rows(count, begin=0):
    return torch.arange(begin, begin + count, dtype=torch.float32)[None, :, None].repeat(2, 1, 3)


def numbers(keys, length, window, query):
    """The numbers of the rows that a query sees."""
    row, mask = keys[0, :, 0], seen(length, keys.shape[1], window, keys.device)
    return row.tolist() if mask is None else row[mask[query]].tolist()


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("lengths", [[1] * 14, [3, 1, 7, 2, 1], [14]])
def test_exact_sees_the_last_rows_itself_included(window, lengths, gradients):
    memory = Memory.empty(2, 3, window, torch.zeros(1))
    with torch.set_grad_enabled(gradients):
        now = 0
        for length in lengths:
            keys, memory = memory.append(rows(length, now), "exact")
            for query in range(length):
                newest = now + query
                assert numbers(keys, length, window, query) == list(range(max(0, newest - window + 1), newest + 1))
            now += length
            assert memory.rows[0, :, 0].tolist() == list(range(max(0, now - window), now))


@pytest.mark.parametrize("gradients", [True, False])
def test_segment_cuts_old_rows_by_the_segment_and_never_sees_more_than_the_window(gradients):
    memory, now = Memory.empty(2, 3, 8, torch.zeros(1)), 0
    with torch.set_grad_enabled(gradients):
        for length in (5, 2, 8, 3, 8, 1, 7):
            before = memory.rows.shape[1]
            keys, memory = memory.append(rows(length, now), "segment")
            old = min(before, 8 - length)
            assert keys.shape[1] == old + length <= 8
            for query in range(length):
                assert numbers(keys, length, None, query) == list(range(now - old, now + query + 1))
            now += length
        with pytest.raises(ValueError, match="longer than the window"):
            memory.append(rows(9), "segment")


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("heads", [None, 2])
def test_memory_sees_so_many_old_rows_whatever_the_segment_is(gradients, heads):
    memory, now = Memory.empty(2, 3, 4, torch.zeros(1), heads), 0
    with torch.set_grad_enabled(gradients):
        for length in (3, 1, 6, 2, 9, 1):
            new = rows(length, now) if heads is None else rows(length, now)[:, None].repeat(1, heads, 1, 1)
            keys, memory = memory.append(new, "memory")
            keys = keys if heads is None else keys[:, -1]
            for query in range(length):
                assert numbers(keys, length, None, query) == list(range(max(0, now - 4), now + query + 1))
            now += length
            assert memory.length == min(now, 4)


@torch.no_grad()
def test_byte_by_byte_moves_one_row_per_row():
    memory = Memory.empty(2, 3, 100, torch.zeros(1))
    places = set()
    moves = 0
    for now in range(1000):
        begin = memory.begin
        _, memory = memory.append(rows(1, now), "exact")
        places.add(memory.buffer.data_ptr())
        moves += memory.begin < begin
    assert len(places) == 1 and memory.buffer.shape[1] == 200  # a small window has its room from the start
    assert moves <= 1000 / 100


@torch.no_grad()
def test_a_memory_that_was_written_into_is_used_once():
    _, memory = Memory.empty(2, 3, 4, torch.zeros(1)).append(rows(3), "exact")
    branch = memory.clone()
    memory.append(rows(1), "exact")
    with pytest.raises(RuntimeError, match="clone"):
        memory.append(rows(1), "exact")
    branch.append(rows(1), "exact")


@torch.no_grad()
def test_what_is_saved_is_what_is_used():
    memory = Memory.empty(2, 3, 4, torch.zeros(1))
    for now in range(6):
        _, memory = memory.append(rows(1, now), "exact")
    saved = memory.to_tensors()
    assert saved["rows"].shape == (2, 4, 3) and memory.clone().nbytes < memory.nbytes
    assert Memory.empty(2, 3, 9, torch.zeros(1)).from_tensors(saved).rows.equal(memory.rows)


@pytest.mark.parametrize("gradients", [True, False])
def test_rows_of_several_heads_are_those_of_one(gradients):
    one, many = Memory.empty(2, 3, 5, torch.zeros(1)), Memory.empty(2, 3, 5, torch.zeros(1), heads=4)
    assert many.rows.shape == (2, 4, 0, 3)
    with torch.set_grad_enabled(gradients):
        for now, length in ((0, 3), (3, 1), (4, 7), (11, 2)):
            keys, one = one.append(rows(length, now), "exact")
            found, many = many.append(rows(length, now)[:, None].repeat(1, 4, 1, 1), "exact")
            assert all(found[:, head].equal(keys) and many.rows[:, head].equal(one.rows) for head in range(4))
    copy = Memory.empty(2, 3, 9, torch.zeros(1), heads=4).from_tensors(many.to_tensors())
    assert copy.rows.equal(many.rows) and copy.window == 5

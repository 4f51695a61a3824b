"""A few streams at a time: all of them, in order, as many as scores allow, one at least."""

import pytest
import torch

from headcount.layers import streams


@pytest.mark.parametrize(("scores", "sizes"), [(3, [3, 2]), (10, [1] * 5), (11, [1] * 5), (1, [5]), (2, [5])])
def test_as_many_as_their_scores_allow(monkeypatch, scores, sizes):
    monkeypatch.setattr(streams, "AT_ONCE", 10)
    one, other = torch.arange(5), torch.arange(10).view(5, 2)
    parts = streams.few_streams(scores, one, other)
    assert [len(first) for first, _ in parts] == sizes
    assert torch.cat([first for first, _ in parts]).equal(one)
    assert torch.cat([second for _, second in parts]).equal(other)

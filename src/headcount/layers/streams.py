"""Streams a few at a time, so that their scores, as many as queries times keys, stay in the cache."""

from __future__ import annotations

import torch
from torch import Tensor

AT_ONCE = 1 << 20
"""Scores that are worked on together, at most, if streams can be divided that far."""


def few_streams(scores: int, *tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """The same few streams of each tensor, again and again, where one stream has so many scores."""
    count = min(max(1, AT_ONCE // scores), len(tensors[0]))
    return list(zip(*(torch.split(tensor, count) for tensor in tensors), strict=True))

"""A window that slides: every byte is scored with at least `context - stride + 1` fed symbols before it, all of them
read anew for every window (Al-Rfou et al. 2018 with a stride of 1).

It is what a model without memory needs, and what any model can be measured by. The text's first bytes have a growing
prefix: the first window scores all of its bytes, every later one only its last `stride`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headcount.measure.score import FED_AT_ONCE, score_last
from headcount.models.contract import Model

Symbols = npt.NDArray[np.integer[Any]]
Nats = npt.NDArray[np.float64]


@torch.inference_mode()
def score_sliding(
    model: Model,
    text: Symbols,
    *,
    start: int,
    context: int,
    stride: int,
    limits: Mapping[str, Any] = MappingProxyType({}),
    check: Callable[[], None] = lambda: None,
) -> Iterator[Nats]:
    """Nats of every byte of a text, in order, some windows at a time; the text comes after `start`.

    `limits` go to the model's own `start`.
    """
    fed = np.concatenate([[start], text[:-1].astype(np.int64)])
    yield score_last(model, fed[None, :context], text[None, :context], limits=limits)[0]
    at_once = max(1, FED_AT_ONCE // context)
    ends = range(context + stride, len(text) + 1, stride)
    for first in range(0, len(ends), at_once):
        check()
        last = np.array(ends[first : first + at_once])[:, None]
        inputs, targets = fed[last - context + np.arange(context)], text[last - stride + np.arange(stride)]
        yield score_last(model, inputs, targets, limits=limits).reshape(-1)
    left = len(text) - (ends[-1] if ends else min(context, len(text)))
    if left:
        yield score_last(model, fed[None, -context:], text[None, -left:], limits=limits)[0]

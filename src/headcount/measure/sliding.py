"""A window that slides: every byte is scored with at least `context - stride + 1` fed symbols before it, all of them
read anew for every window (Al-Rfou et al. 2018 with a stride of 1).

It is what a model without memory needs, and what any model can be measured by. The text's first bytes have a growing
prefix: the first window scores all of its bytes, every later one only its last `stride`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch

from headcount.layers.products import fast_products
from headcount.measure.score import in_use
from headcount.models.contract import Model

Bytes = npt.NDArray[np.uint8]
Nats = npt.NDArray[np.float64]
FED_AT_ONCE = 8_192
"""Symbols: so many windows are read side by side."""


@torch.inference_mode()
def score_sliding(
    model: Model,
    text: Bytes,
    *,
    start: int,
    context: int,
    stride: int,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Nats]:
    """Nats of every byte of a text, in order, some windows at a time; the text comes after `start`."""
    fed = np.concatenate([[start], text[:-1].astype(np.int64)])
    yield _last(model, fed[None, :context], text[None, :context])[0]
    at_once = max(1, FED_AT_ONCE // context)
    ends = range(context + stride, len(text) + 1, stride)
    for first in range(0, len(ends), at_once):
        check()
        last = np.array(ends[first : first + at_once])[:, None]
        inputs, targets = fed[last - context + np.arange(context)], text[last - stride + np.arange(stride)]
        yield _last(model, inputs, targets).reshape(-1)
    left = len(text) - (ends[-1] if ends else min(context, len(text)))
    if left:
        yield _last(model, fed[None, -context:], text[None, -left:])[0]


def _last(model: Model, inputs: npt.NDArray[np.int64], targets: Bytes) -> Nats:
    """Nats of the targets (B × S) that come after the last S of the inputs (B × T), from an empty state."""
    device = next(model.parameters()).device
    with in_use(model), fast_products():
        hidden = model.tail(torch.from_numpy(inputs).to(device), model.start(len(inputs)), targets.shape[1])
        nats = model.head.nll(hidden, torch.from_numpy(targets.astype(np.int64)).to(device))
    return nats.double().cpu().numpy()  # type: ignore[no-any-return]

"""Nats for every token: the primitive below every figure.

A text of any length is fed in segments with carried state, in constant memory. How it is cut does not change the
result for models whose window is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headcount.layers.products import fast_products
from headcount.models.contract import Model

Nats = npt.NDArray[np.float64]
Symbols = npt.NDArray[np.integer[Any]]
SEGMENT = 512
FED_AT_ONCE = 8_192
"""Symbols in one call, where many rows are read side by side."""


@contextmanager
def in_use(model: Model) -> Iterator[None]:
    """Dropout off for a while."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@torch.inference_mode()
def score_lanes(
    model: Model,
    lanes: Symbols,
    *,
    start: int | None,
    limits: Mapping[str, Any] = MappingProxyType({}),
    segment: int = SEGMENT,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Nats]:
    """Nats of every token of B lanes of equal length, a B × T piece at a time, every lane from an empty state.

    `start` is the symbol that every lane comes after; None feeds a lane's first token without scoring it, as the papers
    do. `limits` go to the model's own `start`. `check` is called before each piece and stops the scoring by raising.
    """
    segment = min(segment, model.longest_segment(limits.get("window")) or segment)
    device = next(model.parameters()).device
    state = model.start(len(lanes), **limits)
    before = np.full((len(lanes), 1), start, dtype=np.int64) if start is not None else lanes[:, :1].astype(np.int64)
    with in_use(model):
        for begin in range(0 if start is not None else 1, lanes.shape[1], segment):
            check()
            targets = lanes[:, begin : begin + segment].astype(np.int64)
            inputs = np.concatenate([before, targets[:, :-1]], axis=1)
            with fast_products(inputs.size):
                hidden, state = model(torch.from_numpy(inputs).to(device), state)
                nats = model.head.nll(hidden, torch.from_numpy(targets).to(device))
            yield nats.double().cpu().numpy()
            before = targets[:, -1:]


def score(model: Model, text: Symbols, *, start: int) -> Iterator[Nats]:
    """Nats of every token of one text, a piece at a time: N tokens are N predictions."""
    for piece in score_lanes(model, text[None], start=start):
        yield piece[0]


@torch.inference_mode()
def score_last(
    model: Model,
    inputs: Symbols,
    targets: Symbols,
    *,
    segment: int | None = None,
    limits: Mapping[str, Any] = MappingProxyType({}),
) -> Nats:
    """Nats of the targets (B × S) that come after the last S of the inputs (B × T), from an empty state.

    The inputs are fed at once, or in segments of which the first is what is left over, so that the last is whole.
    """
    size, device = inputs.shape[1], next(model.parameters()).device
    segment = max(targets.shape[1], min(segment or size, model.longest_segment(limits.get("window")) or size))
    fed, state = torch.from_numpy(inputs.astype(np.int64)).to(device), model.start(len(inputs), **limits)
    with in_use(model), fast_products():
        for end in range((size - 1) % segment + 1, size, segment):
            _, state = model(fed[:, max(0, end - segment) : end], state)
        hidden = model.tail(fed[:, -segment:], state, targets.shape[1])
        nats = model.head.nll(hidden, torch.from_numpy(targets.astype(np.int64)).to(device))
    return nats.double().cpu().numpy()  # type: ignore[no-any-return]


def score_rows(model: Model, inputs: Symbols, targets: Symbols) -> Nats:
    """The same for any number of rows of any length, in constant memory: some rows and a segment at a time."""
    at_once = max(1, FED_AT_ONCE // min(inputs.shape[1], SEGMENT))
    return np.concatenate(
        [
            score_last(model, inputs[first : first + at_once], targets[first : first + at_once], segment=SEGMENT)
            for first in range(0, len(inputs), at_once)
        ]
    )

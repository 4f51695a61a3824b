"""Generation: one token after another, the same bytes for the same seed.

A token costs one token's work: the state holds what was read, nothing is fed twice, the window is not copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headcount.errors import RequestError
from headcount.measure.score import SEGMENT, in_use
from headcount.models.contract import Model
from headcount.text.symbols import Tokens


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is drawn."""

    temperature: float = 1.0
    """0 takes the likeliest."""
    top_k: int | None = None
    """Only the k likeliest."""
    top_p: float | None = None
    """Only the likeliest that together have this probability."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise RequestError(f"temperature {self.temperature}: must be a number from 0")
        if self.top_k is not None and self.top_k < 1:
            raise RequestError(f"top-k {self.top_k}: must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise RequestError(f"top-p {self.top_p}: must be above 0 and at most 1")
        if self.seed < 0:
            raise RequestError(f"seed {self.seed}: must not be negative")


@torch.inference_mode()
def sample(model: Model, prompt: Sequence[int], how: Sampling, *, start: int) -> Iterator[int]:
    """An endless stream of symbols that go on from the prompt.

    A model that begins a new window when its own is full would forget everything there: it is given the last half of
    what it read, in a fresh state, instead.
    """
    device = next(model.parameters()).device
    draw, full = np.random.default_rng(how.seed), model.restarts_after
    recent = [start, *prompt]
    state, pending, fed = model.start(1), recent, 0
    segment = min(SEGMENT, model.longest_segment() or SEGMENT)
    with in_use(model):
        while True:
            if full and fed + len(pending) > full:
                recent = recent[-max(1, full // 2) :]
                state, pending, fed = model.start(1), recent, 0
            for begin in range(0, len(pending), segment):
                piece = torch.tensor([pending[begin : begin + segment]], device=device)
                hidden, state = model(piece, state)
            fed += len(pending)
            log_probs = model.head.log_probs(hidden[:, -1:])[0, 0].double().cpu().numpy()
            symbol = choose(log_probs, how, draw.random())
            yield symbol
            pending = [symbol]
            if full:
                recent.append(symbol)


def write(model: Model, prompt: bytes, how: Sampling, tokens: Tokens) -> Iterator[int]:
    """An endless stream of bytes that go on from the prompt.

    The prompt is cut into tokens as it is: a word that it breaks off is not gone on with, but followed.
    """
    given = tokens.encode(prompt).tolist()
    before = given[-1] if given else tokens.start
    for symbol in sample(model, given, how, start=tokens.start):
        yield from tokens.spelled(before)[symbol]
        before = symbol


def choose(log_probs: npt.NDArray[np.float64], how: Sampling, uniform: float) -> int:
    """The symbol at `uniform` in [0, 1) of the cumulative distribution, likeliest first."""
    order = np.argsort(-log_probs, kind="stable")
    if how.temperature == 0:
        return int(order[0])
    if how.top_k is not None:
        order = order[: how.top_k]
    with np.errstate(over="ignore"):  # the smallest temperatures make an infinity, whose exponential is 0
        mass = np.exp((log_probs[order] - log_probs[order[0]]) / how.temperature)
    mass /= mass.sum()
    if how.top_p is not None:
        kept = int(np.searchsorted(np.cumsum(mass), how.top_p)) + 1
        order, mass = order[:kept], mass[:kept]
    cumulative = np.cumsum(mass)
    return int(order[min(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"), len(order) - 1)])

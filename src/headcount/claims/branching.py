"""A place of a text from which a model reads many continuations side by side.

A branch has B rows, each a continuation read so far: its state, and the logarithms of the probabilities of what may
come next (B × V). To follow tokens is to copy rows, so that a branch can be followed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headcount.layers.state import State
from headcount.measure.score import SEGMENT, in_use
from headcount.models.contract import Model
from headcount.text.encoding import Encoded

Logs = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Branch:
    """B continuations of one text."""

    model: Model
    state: State
    log_probs: Logs

    @torch.inference_mode()
    def follow(self, rows: Sequence[int], tokens: Sequence[int]) -> Branch:
        """One more token each for some rows, which may repeat."""
        device = next(self.model.parameters()).device
        state = self.state.select(torch.tensor(rows))
        return _read(self.model, torch.tensor(tokens, device=device)[:, None], state)


@torch.inference_mode()
def branches(model: Model, text: Encoded, places: Sequence[int]) -> Iterator[Branch]:
    """A branch of one row before each of these tokens of a text, in ascending order."""
    device = next(model.parameters()).device
    inputs = torch.from_numpy(np.concatenate([[text.tokens.start], text.ids]).astype(np.int64))[None].to(device)
    segment = min(SEGMENT, model.longest_segment() or SEGMENT)
    state, read = model.start(1), 0
    for place in places:
        if read > place:
            raise ValueError(f"places must ascend: {place} comes after {read - 1}")
        while place + 1 - read > segment:
            state = _read(model, inputs[:, read : read + segment], state).state
            read += segment
        branch = _read(model, inputs[:, read : place + 1], state)
        state, read = branch.state.clone(), place + 1
        yield branch


def _read(model: Model, tokens: torch.Tensor, state: State) -> Branch:
    """Feed B × T tokens."""
    with in_use(model):
        hidden, after = model(tokens, state)
        logs = model.head.log_probs(hidden[:, -1:])[:, 0]
    return Branch(model, after, logs.double().cpu().numpy())

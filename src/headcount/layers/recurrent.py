"""The LSTM with its state outside: h and c go in and come out; time first, as oneDNN has it.

i, f, g, o = W·x + b + U·h + b'        c' = σ(f)⊙c + σ(i)⊙tanh(g)        h' = σ(o)⊙tanh(c')
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headcount.layers.state import State


@dataclass
class LSTMState(State):
    """B × D each: the output and the cell."""

    h: Tensor
    c: Tensor

    @classmethod
    def zeros(cls, batch: int, width: int, like: Tensor) -> LSTMState:
        """How every stream begins."""
        return cls(like.new_zeros(batch, width), like.new_zeros(batch, width))


class LSTM(nn.LSTM):
    """One layer. `nn.LSTM` runs on oneDNN's kernel on CPUs; anything that falls off it is several times slower."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)

    def forward(self, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:  # type: ignore[override]
        """T × B × D to T × B × D, in the dtype of the state whatever autocast computes in."""
        dtype, device = state.h.dtype, x.device.type
        with torch.autocast(device, enabled=torch.is_autocast_enabled(device) and device != "cpu"):
            # Few processors have an LSTM in bfloat16, and oneDNN refuses on the others.
            y, (h, c) = super().forward(x.to(dtype), (state.h[None], state.c[None]))
        return y.to(dtype), LSTMState(h[0].to(dtype), c[0].to(dtype))

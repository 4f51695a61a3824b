"""The LSTM with its state outside: h and c go in and come out, batch first.

i, f, g, o = W·x + b + U·h + b'        c' = σ(f)⊙c + σ(i)⊙tanh(g)        h' = σ(o)⊙tanh(c')
"""

from __future__ import annotations

from dataclasses import dataclass

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
        super().__init__(width, width, batch_first=True)

    def forward(self, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:  # type: ignore[override]
        """B × T × D to B × T × D, in the dtype of the state whatever autocast computes in."""
        y, (h, c) = super().forward(x, (state.h[None].to(x.dtype), state.c[None].to(x.dtype)))
        dtype = state.h.dtype
        return y.to(dtype), LSTMState(h[0].to(dtype), c[0].to(dtype))

"""The LSTM with its state outside: h and c go in and come out; time first, as oneDNN has it.

i, f, g, o = W·x + b + U·h + b'        c' = σ(f)⊙c + σ(i)⊙tanh(g)        h' = σ(o)⊙tanh(c')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

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
        if len(x) == 1 and not torch.is_grad_enabled() and x.dtype == state.h.dtype:
            return self._one_step(x[0], state)
        y, (h, c) = super().forward(x, (state.h[None].to(x.dtype), state.c[None].to(x.dtype)))
        dtype = state.h.dtype
        return y.to(dtype), LSTMState(h[0].to(dtype), c[0].to(dtype))

    def _one_step(self, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        """A single step written out: the kernel prepares itself for a whole segment, and that costs more."""
        input_weight, hidden_weight, input_bias, hidden_bias = cast(list[Tensor], self._flat_weights)
        gates = torch.addmm(input_bias, x, input_weight.t()).addmm_(state.h, hidden_weight.t()).add_(hidden_bias)
        i, f, g, o = gates.chunk(4, dim=1)
        c = torch.addcmul(f.sigmoid_() * state.c, i.sigmoid_(), g.tanh_())
        h = c.tanh().mul_(o.sigmoid_())
        return h[None], LSTMState(h, c)

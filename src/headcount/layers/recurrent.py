"""The LSTM with its state outside: h and c go in and come out; time first, as oneDNN has it.

i, f, g, o = W·x + b + U·h + b'        c' = σ(f)⊙c + σ(i)⊙tanh(g)        h' = σ(o)⊙tanh(c')

The kernel keeps fifteen numbers for each one that comes out, until the backward pass: the largest part of what training
keeps. `recompute` keeps the state at every 64th step instead, and runs the kernel again from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from headcount.layers.state import State

PIECE = 64
"""Steps between two states that are kept for recomputing."""


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

    def forward(  # type: ignore[override]
        self, x: Tensor, state: LSTMState, recompute: bool = False
    ) -> tuple[Tensor, LSTMState]:
        """T × B × D to T × B × D, in the dtype of the state whatever autocast computes in."""
        dtype, device = state.h.dtype, x.device.type
        given = x.to(dtype), state.h[None], state.c[None]
        with torch.autocast(device, enabled=torch.is_autocast_enabled(device) and device != "cpu"):
            # Few processors have an LSTM in bfloat16, and oneDNN refuses on the others.
            if recompute and torch.is_grad_enabled():
                y, h, c = _Recomputed.apply(self, *given, *self.parameters())  # type: ignore[no-untyped-call]
            else:
                y, h, c = self.run(*given)
        return y.to(dtype), LSTMState(h[0].to(dtype), c[0].to(dtype))

    def run(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The kernel: T × B × D, 1 × B × D and 1 × B × D to the same."""
        y, (h, c) = super().forward(x, (h, c))
        return y, h, c


class _Recomputed(torch.autograd.Function):
    """The kernel a piece at a time; the backward pass runs each piece again, the last first."""

    @staticmethod
    def forward(ctx: Any, lstm: LSTM, x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        pieces, states = [], []
        for piece in torch.split(x, PIECE):
            states += [h, c]
            y, h, c = lstm.run(piece, h, c)
            pieces.append(y)
        ctx.lstm = lstm
        ctx.save_for_backward(x, *states)
        return torch.cat(pieces), h, c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_y: Tensor, of_h: Tensor, of_c: Tensor) -> tuple[Tensor | None, ...]:
        x, *states = ctx.saved_tensors
        weights = list(ctx.lstm.parameters())
        of_x, of_weights = torch.empty_like(x), [torch.zeros_like(weight) for weight in weights]
        parts = (torch.split(whole, PIECE) for whole in (x, of_x, of_y))
        for piece, out, upper, h, c in reversed(list(zip(*parts, states[::2], states[1::2], strict=True))):
            with torch.enable_grad():
                given = [tensor.detach().requires_grad_() for tensor in (piece, h, c)]
                again = ctx.lstm.run(*given)
            of_piece, of_h, of_c, *more = torch.autograd.grad(again, [*given, *weights], (upper, of_h, of_c))
            out.copy_(of_piece)
            torch._foreach_add_(of_weights, more)
        return None, of_x, of_h, of_c, *of_weights

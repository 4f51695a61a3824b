"""The Boom layer's arithmetic: u = g(W·z + b), N·D wide, and the N chunks of u summed; g(x) = x·σ(1.702·x).

g(x) = silu(1.702·x)/1.702, which torch has in one pass each way. In training on CPUs the wide layer is worked through
a slice of rows at a time, so that what is wide stays in the cache: only silu's argument (and dropout's mask) is kept
for the backward pass, or not even that, and W·z + b is computed again.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable

from headcount.layers.dropout import apply_kept, draw_kept, dropout

SHARPNESS = 1.702
ROWS = 1024
"""In a slice."""


def boom(z: Tensor, weight: Tensor, bias: Tensor, p: float = 0.0, recompute: bool = False) -> Tensor:
    """… × D to … × D under a weight of N·D × D; dropout falls on u. `recompute` keeps nothing that is wide."""
    flat = z.flatten(0, -2)
    if z.device.type == "cpu" and torch.is_grad_enabled():
        summed: Tensor = _Boom.apply(flat, weight, bias, p, recompute)  # type: ignore[no-untyped-call]
    else:
        u = dropout(F.silu(_wide(flat, weight, bias)), p, p > 0)
        summed = u.view(len(flat), -1, z.shape[-1]).sum(1).mul_(1 / SHARPNESS)
    return summed.view(z.shape)


def _wide(z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """1.702·(W·z + b)."""
    return torch.addmm(bias, z, weight.t(), beta=SHARPNESS, alpha=SHARPNESS)


class _Boom(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, z: Tensor, weight: Tensor, bias: Tensor, p: float, recompute: bool) -> Tensor:
        out = torch.empty_like(z)
        slices: list[Tensor] = []
        for rows, sums in zip(torch.split(z, ROWS), torch.split(out, ROWS), strict=True):
            wide = _wide(rows, weight, bias)
            if not recompute:
                slices.append(wide)
            u = F.silu(wide)
            if p:
                slices.append(draw_kept(u.shape, p))
                u = apply_kept(u, slices[-1], p)
            torch.sum(u.view(len(rows), -1, z.shape[1]), 1, out=sums)
        ctx.save_for_backward(z, weight, bias, *slices)
        ctx.p, ctx.recompute = p, recompute
        return out.mul_(1 / SHARPNESS)

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        z, weight, bias, *slices = ctx.saved_tensors
        of_z, of_weight, of_bias = torch.empty_like(z), torch.zeros_like(weight), weight.new_zeros(len(weight))
        chunks, saved = len(weight) // z.shape[1], iter(slices)
        parts = (torch.split(whole, ROWS) for whole in (z, of_z, gradient))
        for rows, out, upper in zip(*parts, strict=True):
            wide = _wide(rows, weight, bias) if ctx.recompute else next(saved)
            u = upper[:, None].expand(-1, chunks, -1)
            if ctx.p:
                u = apply_kept(u.reshape(wide.shape), next(saved), ctx.p).view_as(u)
            # 1.702 of the argument and 1/1.702 of the sum cancel.
            u = torch.ops.aten.silu_backward(u, wide.view(u.shape)).flatten(1)
            torch.mm(u, weight, out=out)
            of_weight.addmm_(u.t(), rows)
            of_bias.add_(u.sum(0))
        return of_z, of_weight, of_bias, None, None

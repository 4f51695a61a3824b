"""Dropout whose masks are cheap on CPUs.

torch draws one 32-bit number an element and turns it into a float before it is compared; with dropout at the SHA-RNN's
nine places that is much of a training step. Here a 64-bit draw is cut into four 16-bit ones, compared as they are,
and the mask that waits for the backward pass takes a byte. The probability is rounded to 1/65,536, and the scale is
that of the rounded one. On GPUs torch's own kernel does all this in one pass.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

LEVELS = 1 << 16


def draw_kept(shape: torch.Size | tuple[int, ...], p: float, device: torch.device | None = None) -> Tensor:
    """1 for every element that is kept and 0 for the rest, as bytes, from torch's generator for the device."""
    if device is not None and device.type != "cpu":
        return (torch.rand(shape, device=device) >= round(p * LEVELS) / LEVELS).to(torch.uint8)
    count = math.prod(shape)
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[:count]
    return bits.ge_(round(p * LEVELS) - LEVELS // 2).to(torch.uint8).view(shape)


def factors(kept: Tensor, dtype: torch.dtype, p: float) -> Tensor:
    """kept / (1 - p)."""
    return kept.to(dtype).mul_(LEVELS / (LEVELS - round(p * LEVELS)))


def apply_kept(x: Tensor, kept: Tensor | None, p: float) -> Tensor:
    """x ⊙ kept / (1 - p), or x itself where there is no mask."""
    return x if kept is None else factors(kept, x.dtype, p).mul_(x)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        kept = draw_kept(x.shape, p)
        ctx.save_for_backward(kept)
        ctx.p = p
        return apply_kept(x, kept, p)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return apply_kept(gradient, kept, ctx.p), None


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """x with every element zeroed with probability p and the others scaled by 1/(1 - p); x itself outside training."""
    if not training or p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    dropped: Tensor = _Dropout.apply(x, p)  # type: ignore[no-untyped-call]
    return dropped

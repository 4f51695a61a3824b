"""Several heads, each with keys and values of its own: out = softmax(q·kᵀ/√d)·v, never looking ahead.

Queries belong to the last rows: query t of T over S rows sees rows 0 … S - T + t. torch's fused kernel does it, except
in training with dropout on CPUs: the kernel knows no dropout and torch would fall back to single operations with slow
masks, so there it is written out, with masks of `layers/dropout.py`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable

from headcount.layers.dropout import apply_kept, draw_kept


def attend_heads(query: Tensor, keys: Tensor, values: Tensor, dropout: float = 0.0) -> Tensor:
    """B × H × T × d queries over B × H × S × d rows to B × H × T × d; dropout falls on the weights."""
    if dropout and query.device.type == "cpu" and torch.is_grad_enabled():
        out: Tensor = _Attend.apply(query, keys, values, dropout)  # type: ignore[no-untyped-call]
        return out
    length, rows = query.shape[-2], keys.shape[-2]
    mask = None
    if 1 < length < rows:  # `is_causal` would align queries with the oldest rows
        mask = torch.ones(length, rows, dtype=torch.bool, device=query.device).tril_(rows - length)
    return F.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask, dropout_p=dropout, is_causal=length == rows
    )


def head_weights(query: Tensor, keys: Tensor) -> Tensor:
    """softmax(q·kᵀ/√d) itself: B × H × T × S."""
    batch, heads, length, _ = query.shape
    return _weights(query.flatten(0, 1), keys.flatten(0, 1)).view(batch, heads, length, keys.shape[-2])


def _weights(query: Tensor, keys: Tensor) -> Tensor:
    """The same for one dimension of batch and heads."""
    length, rows = query.shape[-2], keys.shape[-2]
    ahead = query.new_full((length, rows), -math.inf).triu_(rows - length + 1)
    scores = torch.baddbmm(ahead, query, keys.transpose(1, 2), alpha=query.shape[-1] ** -0.5)
    return torch.softmax(scores, dim=-1)


class _Attend(torch.autograd.Function):
    """With P = softmax(q·kᵀ/√d), a mask K over 1 - p, W = P⊙K and out = W·v:

    dP = (g·vᵀ)⊙K      dS = P⊙(dP - Σ g⊙out)/√d      dq = dS·k      dk = dSᵀ·q      dv = Wᵀ·g
    """

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, query: Tensor, keys: Tensor, values: Tensor, p: float) -> Tensor:
        shape = query.shape
        query, keys, values = (tensor.flatten(0, 1) for tensor in (query, keys, values))
        weights = _weights(query, keys)
        kept = draw_kept(weights.shape, p)
        out = torch.bmm(apply_kept(weights, kept, p), values)
        ctx.save_for_backward(query, keys, values, weights, kept, out)
        ctx.p, ctx.heads = p, shape[1]
        return out.view(shape)

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, values, weights, kept, out = ctx.saved_tensors
        gradient = gradient.flatten(0, 1)
        of_values = torch.bmm(apply_kept(weights, kept, ctx.p).transpose(1, 2), gradient)
        through = (gradient * out).sum(-1, keepdim=True)
        scores = apply_kept(torch.bmm(gradient, values.transpose(1, 2)), kept, ctx.p).sub_(through).mul_(weights)
        scores.mul_(query.shape[-1] ** -0.5)
        found = torch.bmm(scores, keys), torch.bmm(scores.transpose(1, 2), query), of_values
        return *(tensor.view(-1, ctx.heads, *tensor.shape[1:]) for tensor in found), None

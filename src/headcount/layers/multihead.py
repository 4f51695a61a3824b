"""Several heads, each with keys and values of its own: out = softmax(q·kᵀ/√d)·v, never looking ahead.

Queries belong to the last rows: query t of T over S rows sees rows 0 … S - T + t. In training on CPUs this is written
out, a block of queries at a time over the rows that one of them sees: the weights are kept for the backward pass, where
torch's fused kernel computes them again, matrices are multiplied by the faster library (`layers/products.py`), and
dropout need not leave the fast path. Everywhere else the fused kernel does it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable

from headcount.layers.dropout import apply_kept, draw_kept
from headcount.layers.softmax import scores_gradient

BLOCK = 128
"""Queries at a time: rows that come after all of them cost nothing."""


def attend_heads(query: Tensor, keys: Tensor, values: Tensor, dropout: float = 0.0) -> Tensor:
    """B × H × T × d queries over B × H × S × d rows to B × H × T × d; dropout falls on the weights."""
    if query.device.type == "cpu" and torch.is_grad_enabled():
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
        out, saved = torch.empty_like(query), []
        for queries, seen in _blocks(shape[-2], keys.shape[-2]):
            weights = _weights(query[:, queries], keys[:, seen])
            saved.append(weights)
            if p:
                saved.append(draw_kept(weights.shape, p))
                weights = apply_kept(weights, saved[-1], p)
            torch.bmm(weights, values[:, seen], out=out[:, queries])
        ctx.save_for_backward(query, keys, values, out, *saved)
        ctx.p, ctx.heads = p, shape[1]
        return out.view(shape)

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, values, out, *rest = ctx.saved_tensors
        gradient, saved = gradient.flatten(0, 1), iter(rest)
        found = torch.empty_like(query), torch.zeros_like(keys), torch.zeros_like(values)
        of_query, of_keys, of_values = found
        through, scale = (gradient * out).sum(-1, keepdim=True), query.shape[-1] ** -0.5
        for queries, seen in _blocks(query.shape[1], keys.shape[1]):
            weights, kept = next(saved), next(saved) if ctx.p else None
            upper = gradient[:, queries]
            scores = scores_gradient(upper, through[:, queries], values[:, seen], weights, kept, ctx.p)
            of_values[:, seen].baddbmm_(apply_kept(weights, kept, ctx.p).transpose(1, 2), upper)
            of_keys[:, seen].baddbmm_(scores.transpose(1, 2), query[:, queries], alpha=scale)
            torch.bmm(scores, keys[:, seen], out=of_query[:, queries])
        of_query.mul_(scale)
        return *(tensor.view(-1, ctx.heads, *tensor.shape[1:]) for tensor in found), None


def _blocks(length: int, rows: int) -> Iterator[tuple[slice, slice]]:
    """Queries, a block at a time, and the rows that one of them sees."""
    for begin in range(0, length, BLOCK):
        end = min(begin + BLOCK, length)
        yield slice(begin, end), slice(0, rows - length + end)

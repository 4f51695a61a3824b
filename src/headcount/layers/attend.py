"""One head over rows that are keys and values at once: out = softmax(q·Mᵀ)·M.

In training on CPUs this is written out, because three things that torch's kernel cannot know make it cheaper:
keys and values are the same tensor, rows of the past get no gradient, and dropout need not leave the fast path. The
weights are materialised once, for a few streams at a time, and kept for the backward pass or computed again there.
Everywhere else torch's fused kernel does it.
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
from headcount.layers.softmax import scores_gradient
from headcount.layers.streams import few_streams


def attend(
    query: Tensor, rows: Tensor, learnt: Tensor, mask: Tensor | None, dropout: float = 0.0, keep: bool = True
) -> Tensor:
    """B × T × D queries over B × S × D rows to B × T × D; `mask` (T × S) is true where a row is seen.

    Gradients of the rows go to `learnt`, which is the last of them (B × L × D). Dropout falls on the weights and,
    elementwise, on the rows as values. Without `keep` nothing of T × S is kept for the backward pass but its masks.
    """
    if query.device.type == "cpu" and torch.is_grad_enabled():
        hide = query.new_zeros(()) if mask is None else torch.where(mask, 0.0, -math.inf).to(query.dtype)
        out: Tensor = _Attend.apply(query, rows.detach(), learnt, hide, dropout, keep)  # type: ignore[no-untyped-call]
        return out
    old = rows[:, : rows.shape[1] - learnt.shape[1]]
    rows = torch.cat([old, learnt], dim=1) if torch.is_grad_enabled() else rows
    values = F.dropout(rows, dropout) if dropout else rows
    return F.scaled_dot_product_attention(
        query[:, None],  # one head
        rows[:, None],
        values[:, None],
        attn_mask=mask,  # explicit: `is_causal` would align it with the oldest row
        dropout_p=dropout,
        scale=1.0,
    )[:, 0]


def _weights(query: Tensor, rows: Tensor, hide: Tensor) -> Tensor:
    """P = softmax(q·Mᵀ)."""
    return torch.softmax(torch.baddbmm(hide, query, rows.transpose(1, 2)), dim=-1)


class _Attend(torch.autograd.Function):
    """With P = softmax(q·Mᵀ), masks K and K' over 1 - p, W = P⊙K, V = M⊙K' and out = W·V:

    dP = (d·Vᵀ)⊙K      dS = P⊙(dP - Σ d⊙out)      dq = dS·M      dM = dSᵀ·q + (Wᵀ·d)⊙K'
    """

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, query: Tensor, rows: Tensor, learnt: Tensor, hide: Tensor, p: float, keep: bool) -> Tensor:
        out, saved = torch.empty_like(query), []
        for q, m, mixed in few_streams(query.shape[1] * rows.shape[1], query, rows, out):
            weights, kept, kept_rows = _weights(q, m, hide), None, None
            saved += [weights] if keep else []
            if p:
                kept, kept_rows = draw_kept(weights.shape, p), draw_kept(m.shape, p)
                saved += [kept, kept_rows]
            torch.bmm(apply_kept(weights, kept, p), apply_kept(m, kept_rows, p), out=mixed)
        ctx.save_for_backward(query, rows, hide, out, *saved)
        ctx.p, ctx.keep, ctx.learnt = p, keep, learnt.shape[1]
        return out

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, rows, hide, out, *kept_tensors = ctx.saved_tensors
        saved, new = iter(kept_tensors), slice(rows.shape[1] - ctx.learnt, None)
        of_query, of_learnt = torch.empty_like(query), torch.empty_like(rows[:, new])
        whole = query, rows, gradient, (gradient * out).sum(-1, keepdim=True), of_query, of_learnt
        for q, m, upper, through, to_query, to_learnt in few_streams(query.shape[1] * rows.shape[1], *whole):
            weights = next(saved) if ctx.keep else _weights(q, m, hide)
            kept, kept_rows = (next(saved), next(saved)) if ctx.p else (None, None)
            scores = scores_gradient(upper, through, apply_kept(m, kept_rows, ctx.p), weights, kept, ctx.p)
            torch.bmm(scores, m, out=to_query)
            as_values = torch.bmm(apply_kept(weights, kept, ctx.p)[:, :, new].transpose(1, 2), upper)
            torch.bmm(scores[:, :, new].transpose(1, 2), q, out=to_learnt)
            to_learnt += apply_kept(as_values, None if kept_rows is None else kept_rows[:, new], ctx.p)
        return of_query, None, of_learnt, None, None, None

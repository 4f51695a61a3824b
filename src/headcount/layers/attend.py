"""One head over rows that are keys and values at once: out = softmax(q·Mᵀ)·M.

In training on CPUs this is written out, because three things that torch's kernel cannot know make it cheaper:
keys and values are the same tensor, rows of the past get no gradient, and dropout need not leave the fast path. The
weights are materialised once. Everywhere else torch's fused kernel does it.
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


def attend(query: Tensor, rows: Tensor, learnt: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
    """B × T × D queries over B × S × D rows to B × T × D; `mask` (T × S) is true where a row is seen.

    Gradients of the rows go to `learnt`, which is the last of them (B × L × D). Dropout falls on the weights and,
    elementwise, on the rows as values.
    """
    if query.device.type == "cpu" and torch.is_grad_enabled():
        out: Tensor = _Attend.apply(query, rows.detach(), learnt, mask, dropout)  # type: ignore[no-untyped-call]
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


class _Attend(torch.autograd.Function):
    """With P = softmax(q·Mᵀ), masks K and K' over 1 - p, W = P⊙K, V = M⊙K' and out = W·V:

    dP = (d·Vᵀ)⊙K      dS = P⊙(dP - Σ d⊙out)      dq = dS·M      dM = dSᵀ·q + (Wᵀ·d)⊙K'
    """

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, query: Tensor, rows: Tensor, learnt: Tensor, mask: Tensor | None, p: float) -> Tensor:
        hide = query.new_zeros(()) if mask is None else torch.where(mask, 0.0, -math.inf).to(query.dtype)
        weights = torch.softmax(torch.baddbmm(hide, query, rows.transpose(1, 2)), dim=-1)
        kept, kept_rows = (draw_kept(weights.shape, p), draw_kept(rows.shape, p)) if p else (None, None)
        out = torch.bmm(apply_kept(weights, kept, p), apply_kept(rows, kept_rows, p))
        ctx.save_for_backward(query, rows, weights, out, kept, kept_rows)
        ctx.p, ctx.learnt = p, learnt.shape[1]
        return out

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, rows, weights, out, kept, kept_rows = ctx.saved_tensors
        through, values = (gradient * out).sum(-1, keepdim=True), apply_kept(rows, kept_rows, ctx.p)
        scores = scores_gradient(gradient, through, values, weights, kept, ctx.p)
        new = slice(rows.shape[1] - ctx.learnt, None)
        as_values = torch.bmm(apply_kept(weights, kept, ctx.p)[:, :, new].transpose(1, 2), gradient)
        as_values = apply_kept(as_values, None if kept is None else kept_rows[:, new], ctx.p)
        as_keys = torch.bmm(scores[:, :, new].transpose(1, 2), query)
        return torch.bmm(scores, rows), None, as_keys.add_(as_values), None, None

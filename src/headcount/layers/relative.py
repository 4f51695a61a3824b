"""Attention with a term for the distance (Dai et al. 2019): s_ij = c_i·k_j + p_i·r_δ, δ = M + i - j.

out = softmax(s)·v. c and p are the query twice, each with its own bias and already scaled; r has a row for every
distance, shared by all streams. p_i·r is computed for all distances at once; row i is then needed T - 1 - i columns
further left. Written with one spare column behind each row, the shifted matrix lies in the same memory as it is:
element (i, j) is S·i + j + T - 1 places on. A row of zeros behind r makes that column. What lies right of the diagonal
is another row's and is hidden. The published code pads, copies and reshapes.

In training one stream follows the other, so that scores stay in the cache, and what is multiplied is contiguous: the
library would copy it anew for every product. Only the weights are kept. Without gradients one head follows the other.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from headcount.layers.dropout import apply_kept, draw_kept
from headcount.layers.softmax import scores_gradient


def attend_by_distance(
    content: Tensor,
    place: Tensor,
    both: Tensor,
    positions: Tensor,
    hide: Tensor | None,
    p: float = 0.0,
    keep: bool = True,
) -> Tensor:
    """B × H × T × D queries c and p over B × 2H × S × D keys and values to B × H × T × D.

    `positions` is H × S × D', a row for every distance from S - 1 down to 0; `place` is D' wide. `hide` (T × S) is
    -∞ where a key is not seen and 0 elsewhere. Dropout falls on the weights. Without `keep` nothing of T × S is kept
    for the backward pass but dropout's masks, and the weights are computed again.
    """
    with torch.autocast(content.device.type, enabled=False):  # what is given has one dtype, and so have gradients
        if torch.is_grad_enabled():
            out: Tensor = _Attend.apply(content, place, both, positions, hide, p, keep)  # type: ignore[no-untyped-call]
            return out
        way = _head_by_head if content.device.type == "cpu" else fused
        return way(content, place, both, positions, hide)


def _head_by_head(content: Tensor, place: Tensor, both: Tensor, positions: Tensor, hide: Tensor | None) -> Tensor:
    """Without gradients, on CPUs: the scores of one head of one stream stay in the cache."""
    out, hidden = torch.empty_like(content), content.new_zeros(()) if hide is None else hide.to(content.dtype)
    length, keys = content.shape[2], both.shape[2]
    for cs, qs, ks, vs, outs in zip(content, place, *both.chunk(2, dim=1), out, strict=True):
        for c, q, k, v, r, mixed in zip(cs, qs, ks, vs, positions, outs, strict=True):
            scores = torch.addmm(hidden, c, k.t())
            # Only read, so that rows may lie over each other, and none needs a spare column.
            scores += torch.mm(q, r.t()).as_strided((length, keys), (keys - 1, 1), length - 1)
            torch.mm(torch.softmax(scores, dim=-1), v, out=mixed)
    return out


def fused(content: Tensor, place: Tensor, both: Tensor, positions: Tensor, hide: Tensor | None) -> Tensor:
    """Without gradients, elsewhere: the distances' term is the bias of torch's fused kernel."""
    keys, values = both.chunk(2, dim=1)
    bias = _shifted(place @ _padded(positions).transpose(1, 2))
    return F.scaled_dot_product_attention(
        content, keys, values, attn_mask=bias if hide is None else bias + hide, scale=1.0
    )


def distance_weights(content: Tensor, place: Tensor, keys: Tensor, positions: Tensor, hide: Tensor | None) -> Tensor:
    """softmax(s) of every stream: B × H × T × S."""
    rows, streams = _padded(positions), zip(content, place, keys, strict=True)
    return torch.stack([_weights(c, p, k, rows, hide) for c, p, k in streams])


def _padded(positions: Tensor) -> Tensor:
    """r with a row of zeros behind it, H × (S + 1) × D'."""
    return F.pad(positions, (0, 0, 0, 1)).contiguous()


def _shifted(by_distance: Tensor) -> Tensor:
    """The same memory by key: … × T × (S + 1) to … × T × S."""
    length, keys = by_distance.shape[-2], by_distance.shape[-1] - 1
    first = length - 1
    return by_distance.flatten(-2)[..., first : first + length * keys].view(*by_distance.shape[:-1], keys)


def _weights(content: Tensor, place: Tensor, keys: Tensor, rows: Tensor, hide: Tensor | None) -> Tensor:
    """softmax(s) of one stream, H × T × S; `rows` is r, padded."""
    hidden = content.new_zeros(()) if hide is None else hide.to(content.dtype)  # autocast may have made it narrow
    scores = torch.baddbmm(hidden, content, keys.transpose(1, 2))
    scores += _shifted(torch.bmm(place, rows.transpose(1, 2)))
    return torch.softmax(scores, dim=-1)


class _Attend(torch.autograd.Function):
    """With A = softmax(s), a mask K over 1 - p, W = A⊙K and out = W·v:

    dA = (d·vᵀ)⊙K      dS = A⊙(dA - Σ d⊙out)      dc = dS·k      dk = dSᵀ·c      dv = Wᵀ·d
    and with dS shifted back, S̃: dp = S̃·r      dr = Σ_streams S̃ᵀ·p
    """

    @staticmethod
    def forward(  # noqa: PLR0913 (everything that has a gradient, one by one)
        ctx: Any, content: Tensor, place: Tensor, both: Tensor, positions: Tensor, hide: Any, p: float, keep: bool
    ) -> Tensor:
        content, place, both = (tensor.contiguous() for tensor in (content, place, both))
        rows, out, saved = _padded(positions), torch.empty_like(content), []
        for c, q, b, mixed in zip(content, place, both, out, strict=True):
            keys, values = b.chunk(2)
            weights = _weights(c, q, keys, rows, hide)
            saved += [weights] if keep else []
            if p:
                saved.append(draw_kept(weights.shape, p, weights.device))
                weights = apply_kept(weights, saved[-1], p)
            torch.bmm(weights, values, out=mixed)
        ctx.save_for_backward(content, place, both, rows, hide, out, *saved)
        ctx.p, ctx.keep = p, keep
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        content, place, both, rows, hide, out, *kept = ctx.saved_tensors
        gradient, saved = gradient.contiguous(), iter(kept)
        of_content, of_place, of_both = (torch.empty_like(tensor) for tensor in (content, place, both))
        of_rows, through = torch.zeros_like(rows), (gradient * out).sum(-1, keepdim=True)
        # What is not written stays 0: distances that no key has.
        by_distance = content.new_zeros(*content.shape[1:3], rows.shape[1])
        streams = (content, place, both, gradient, through, of_content, of_place, of_both)
        with torch.autocast(content.device.type, enabled=False):  # as on the way here
            for c, q, b, upper, inner, to_c, to_q, to_b in zip(*streams, strict=True):
                (keys, values), (to_keys, to_values) = b.chunk(2), to_b.chunk(2)
                weights = next(saved) if ctx.keep else _weights(c, q, keys, rows, hide)
                dropped = next(saved) if ctx.p else None
                torch.bmm(apply_kept(weights, dropped, ctx.p).transpose(1, 2), upper, out=to_values)
                scores = scores_gradient(upper, inner, values, weights, dropped, ctx.p)
                torch.bmm(scores, keys, out=to_c)
                torch.bmm(scores.transpose(1, 2), c, out=to_keys)
                _shifted(by_distance).copy_(scores)
                torch.bmm(by_distance, rows, out=to_q)
                of_rows.baddbmm_(by_distance.transpose(1, 2), q)
        return of_content, of_place, of_both, of_rows[:, :-1], None, None, None

"""Attention with a term for the distance (Dai et al. 2019): s_ij = c_i·k_j + p_i·r_δ, δ = M + i - j.

out = softmax(s)·v. c and p are the query twice, each with its own bias and already scaled; r has a row for every
distance, shared by all streams. p_i·r is computed for all distances at once; row i is then needed T - 1 - i columns
further left. Written with one spare column behind each row, the shifted matrix lies in the same memory as it is:
element (i, j) is S·i + j + T - 1 places on. What lies right of the diagonal is another row's and is hidden. The
published code pads, copies and reshapes.

Streams are worked through a few at a time, so that scores stay in the cache. In training only the weights are kept;
without gradients the distances' term is the bias of torch's fused kernel.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from headcount.layers.dropout import apply_kept, draw_kept
from headcount.layers.softmax import scores_gradient
from headcount.layers.streams import few_streams


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
    if torch.is_grad_enabled():
        with torch.autocast(content.device.type, enabled=False):  # what is given has one dtype, and so have gradients
            out: Tensor = _Attend.apply(content, place, both, positions, hide, p, keep)  # type: ignore[no-untyped-call]
        return out
    parts = []
    for c, q, b in _few(content, place, both):
        keys, values = b.chunk(2, dim=1)
        bias = _by_key(q, positions, hide, keys.shape[2])
        parts.append(F.scaled_dot_product_attention(c, keys, values, attn_mask=bias, scale=1.0))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _few(*tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """The same few streams of each: queries, queries, keys and values, and whatever goes with them."""
    _, heads, length, _ = tensors[0].shape
    return few_streams(heads * length * tensors[2].shape[2], *tensors)


def _spared(queries: Tensor, keys: int) -> tuple[Tensor, Tensor]:
    """Memory for C × H matrices of T × S with a spare column: by distance, and by key, which is the same shifted."""
    streams, heads, length, _ = queries.shape
    memory = queries.new_empty(streams, heads, length * (keys + 1))
    first, last = length - 1, length - 1 + length * keys
    memory[..., :first].zero_()  # distances that no key has
    spare = memory.view(streams, heads, length, keys + 1)
    spare[..., keys].zero_()  # whatever stood there might not be a number, and hiding it would not help
    return spare[..., :keys], memory[..., first:last].view(streams, heads, length, keys)


def _by_key(place: Tensor, positions: Tensor, hide: Tensor | None, keys: int) -> Tensor:
    """p_i·r_δ, C × H × T × S; hidden keys have -∞."""
    by_distance, scores = _spared(place, keys)
    for stream in range(len(place)):
        torch.bmm(place[stream], positions.transpose(1, 2), out=by_distance[stream])
    if hide is not None:
        scores += hide
    return scores


def distance_weights(content: Tensor, place: Tensor, keys: Tensor, positions: Tensor, hide: Tensor | None) -> Tensor:
    """softmax(s): C × H × T × S."""
    scores = _by_key(place, positions, hide, keys.shape[2])
    for stream in range(len(content)):
        torch.baddbmm(scores[stream], content[stream], keys[stream].transpose(1, 2), out=scores[stream])
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
        outs, kept = [], []
        for c, q, b in _few(content, place, both):
            keys, values = b.chunk(2, dim=1)
            weights = distance_weights(c, q, keys, positions, hide)
            kept += [weights] if keep else []
            if p:
                kept.append(draw_kept(weights.shape, p, weights.device))
                weights = apply_kept(weights, kept[-1], p)
            outs.append(torch.matmul(weights, values))
        out = torch.cat(outs)
        ctx.save_for_backward(content, place, both, positions, hide, out, *kept)
        ctx.p, ctx.keep = p, keep
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        content, place, both, positions, hide, out, *kept = ctx.saved_tensors
        of_content, of_place, of_both = (torch.empty_like(tensor) for tensor in (content, place, both))
        of_positions, saved = torch.zeros_like(positions), iter(kept)
        through = (gradient * out).sum(-1, keepdim=True)
        parts = _few(content, place, both, gradient, through, of_content, of_place, of_both)
        for c, q, b, upper, inner, to_c, to_q, to_b in parts:
            (keys, values), (to_keys, to_values) = b.chunk(2, dim=1), to_b.chunk(2, dim=1)
            weights = next(saved) if ctx.keep else distance_weights(c, q, keys, positions, hide)
            dropped = next(saved) if ctx.p else [None] * len(c)
            by_distance, scores = _spared(c, keys.shape[2])
            for s in range(len(c)):
                torch.bmm(apply_kept(weights[s], dropped[s], ctx.p).transpose(1, 2), upper[s], out=to_values[s])
                scores_gradient(upper[s], inner[s], values[s], weights[s], dropped[s], ctx.p, scores[s])
                torch.bmm(scores[s], keys[s], out=to_c[s])
                torch.bmm(scores[s].transpose(1, 2), c[s], out=to_keys[s])
                torch.bmm(by_distance[s], positions, out=to_q[s])
                of_positions.baddbmm_(by_distance[s].transpose(1, 2), q[s])
        return of_content, of_place, of_both, of_positions, None, None, None

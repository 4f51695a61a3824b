"""A layer of a Transformer that never looks ahead, with a learned table of absolute positions P of its own:

    x ← x + P[0 … T-1]
    post:   h = LN(x + Attention(x))        y = LN(h + FFN(h))
    pre:    h = x + Attention(LN(x))        y = h + FFN(LN(h))
    FFN(z) = W₂·relu(W₁·z + b₁) + b₂

(Vaswani et al. 2017.) Dropout falls on attention's weights and on ReLU's outputs, nowhere else. What a window holds so
far is a memory of keys and values, B × 2H × S × d, keys first; the next position is the number of its rows.
"""

from __future__ import annotations

from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headcount.layers.dropout import dropout
from headcount.layers.memory import Memory
from headcount.layers.multihead import attend_heads, head_weights
from headcount.layers.norm import LayerNorm

Norm = Literal["post", "pre"]


class Attention(nn.Module):
    """[q; k; v] = W·x, H heads of d = D/H each: out = W_o·(softmax(q·kᵀ/√d)·v); perhaps with biases, from 0."""

    def __init__(self, width: int, heads: int, dropout: float, biases: bool = False) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.mix, self.out = nn.Linear(width, 3 * width, bias=biases), nn.Linear(width, width, bias=biases)
        for bias in (self.mix.bias, self.out.bias) if biases else ():
            nn.init.zeros_(bias)

    def forward(self, x: Tensor, memory: Memory | None, last: int) -> tuple[Tensor, Memory | None]:
        """B × T × D to the last `last` rows of it; no memory: nothing came before, and nothing is remembered."""
        query, rows = self._project(x, last)
        if memory is not None:
            rows, memory = memory.append(rows, "exact")
        keys, values = rows.chunk(2, dim=1)
        found = attend_heads(query, keys, values, self.dropout if self.training else 0.0)
        return self.out(found.transpose(1, 2).flatten(2)), memory

    def weights(self, x: Tensor, memory: Memory | None) -> Tensor:
        """Where every head looks, B × H × T × S; only where gradients are on, where the memory is not written into."""
        query, rows = self._project(x, x.shape[1])
        if memory is not None:
            rows, _ = memory.append(rows, "exact")
        return head_weights(query, rows[:, : self.heads])

    def _project(self, x: Tensor, last: int) -> tuple[Tensor, Tensor]:
        """The last queries, B × H × last × d, and all keys and values, B × 2H × T × d, in the weights' dtype."""
        weight, bias, width = self.mix.weight, self.mix.bias, x.shape[-1]
        if last == x.shape[1]:
            query, rows = self.mix(x).split([width, 2 * width], dim=-1)
        else:
            of_query, of_rows = (None, None) if bias is None else (bias[:width], bias[width:])
            query, rows = F.linear(x[:, -last:], weight[:width], of_query), F.linear(x, weight[width:], of_rows)
        query, rows = (mixed.to(weight.dtype).unflatten(-1, (-1, width // self.heads)) for mixed in (query, rows))
        return query.transpose(1, 2), rows.transpose(1, 2)


class Layer(nn.Module):
    """Positions, attention, feed-forward; one norm for each of the two."""

    def __init__(
        self, width: int, heads: int, inner: int, context: int, norm: Norm, dropout: float, biases: bool = False
    ) -> None:
        super().__init__()
        self.pre, self.dropout = norm == "pre", dropout
        self.positions = nn.Parameter(torch.empty(context, width))
        self.attention, self.attention_norm = Attention(width, heads, dropout, biases), LayerNorm(width)
        self.up, self.down, self.forward_norm = nn.Linear(width, inner), nn.Linear(inner, width), LayerNorm(width)

    def forward(self, x: Tensor, memory: Memory | None, last: int | None = None) -> tuple[Tensor, Memory | None]:
        """B × T × D to the last `last` (or all) rows of it, and the memory after it."""
        x = self.placed(x, memory)
        last = x.shape[1] if last is None else last
        found, memory = self.attention(self.read(x), memory, last)
        h = x[:, x.shape[1] - last :] + found
        if self.pre:
            return h + self._inner(self.forward_norm(h)), memory
        h = self.attention_norm(h)
        return self.forward_norm(h + self._inner(h)), memory

    def placed(self, x: Tensor, memory: Memory | None) -> Tensor:
        """What the layer is given, with its positions: after the rows that are there."""
        begin = 0 if memory is None else memory.rows.shape[-2]
        return x + self.positions[begin : begin + x.shape[1]]

    def read(self, x: Tensor) -> Tensor:
        """What attention is given."""
        return cast(Tensor, self.attention_norm(x)) if self.pre else x

    def _inner(self, z: Tensor) -> Tensor:
        u = F.relu(self.up(z))
        return cast(Tensor, self.down(dropout(u, self.dropout, self.training)))

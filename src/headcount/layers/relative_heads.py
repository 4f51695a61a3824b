"""Multi-head attention with positions of several kinds: by distance (Dai et al. 2019, Shaw et al. 2018), or none.

A head's scores are s_ij = [(q_i + u)·k_j + (q_i + v)·r_δ]/√d with r_δ = W_r·S(δ) (`relative`), or
[(q_i + u)·k_j + q_i·E_δ + b_δ]/√d with learnt rows E and b for so many distances (`shaw`), or q_i·k_j/√d, where
positions are in the vectors already. δ = how far key j lies behind query i. How it is computed: layers/relative.py,
and without distances layers/multihead.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headcount.layers.multihead import attend_heads, head_weights
from headcount.layers.relative import attend_by_distance, distance_weights


class Sizes(Protocol):
    """What attention asks of a model's Config."""

    @property
    def width(self) -> int:
        """D."""
        ...

    @property
    def heads(self) -> int:
        """H."""
        ...

    @property
    def d(self) -> int:
        """A head's width."""
        ...

    @property
    def window(self) -> int:
        """Distances that Shaw's table has rows for."""
        ...

    @property
    def positions(self) -> str:
        """relative, shaw, or anything else for none."""
        ...

    @property
    def shared_biases(self) -> bool:
        """u and v are the model's."""
        ...

    @property
    def recompute(self) -> str:
        """nothing, or anything else for keeping as little as possible in training."""
        ...

    @property
    def attention_dropout(self) -> float:
        """On the weights."""
        ...


@dataclass(frozen=True)
class Seen:
    """What a layer's queries see."""

    both: Tensor
    """Keys and values, B × 2H × S × d."""
    hide: Tensor | None
    """T × S: 0 where a key is seen, -∞ elsewhere; None if all are."""
    projected: Tensor | None
    """r, H × S × D', farthest first; None where positions are absolute: nothing is hidden then but what lies ahead."""
    biases: tuple[Tensor, Tensor] | None
    """u and v, where layers share them."""


@dataclass
class Projected:
    """r of every layer for the distances needed so far (H × N × D' each, farthest first): no stream has its own."""

    tables: list[Tensor] = field(default_factory=list)

    def reach(self, rows: int, most: int, project: Callable[[int], list[Tensor]]) -> list[Tensor]:
        """r for the distances rows - 1 … 0, H × S × D' a layer; with gradients off made once and kept.

        As a text grows they are made for twice as many, but for no more than the `most` that segments like this see.
        """
        if torch.is_grad_enabled():
            return project(rows)
        if not self.tables or self.tables[0].shape[1] < rows:
            self.tables = [table.contiguous() for table in project(min(2 * rows, most))]
        return [table[:, -rows:] for table in self.tables]


def as_bias(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """What is added to scores under a mask that is true where a key is seen."""
    return None if mask is None else torch.where(mask, 0.0, -math.inf).to(like.dtype)


class Attention(nn.Module):
    """All heads of a layer."""

    def __init__(self, config: Sizes) -> None:
        super().__init__()
        self.config, inner = config, config.heads * config.d
        self.query = nn.Linear(config.width, inner, bias=False)
        self.key_value = nn.Linear(config.width, 2 * inner, bias=False)
        self.out = nn.Linear(inner, config.width, bias=False)
        if config.positions == "relative":
            self.distance = nn.Linear(config.width, inner, bias=False)
        if config.positions == "shaw":
            self.table = nn.Parameter(torch.empty(config.window, config.heads, config.d))
            self.table_bias = nn.Parameter(torch.empty(config.window, config.heads))
        if config.positions == "shaw" or (config.positions == "relative" and not config.shared_biases):
            self.content_bias = nn.Parameter(torch.empty(config.heads, config.d))
        if config.positions == "relative" and not config.shared_biases:
            self.distance_bias = nn.Parameter(torch.empty(config.heads, config.d))

    def keys_and_values(self, rows: Tensor) -> Tensor:
        """B × S × D layer inputs to B × 2H × S × d, in the inputs' dtype whatever autocast computes in."""
        return self._by_head(self.key_value(rows).to(rows.dtype))

    def project(self, distances: Tensor, waves: Tensor | None) -> Tensor:
        """The rows of these N distances, H × N × D'; `waves` is their sinusoid, N × D."""
        if waves is not None:
            weight = self.distance.weight
            mixed: Tensor = self.distance(waves.to(weight.dtype)).to(weight.dtype)
            return mixed.view(len(waves), self.config.heads, self.config.d).transpose(0, 1)
        rows = distances.clamp(max=len(self.table) - 1)
        with_bias = torch.cat([self.table, self.table_bias[..., None]], dim=-1)
        return with_bias[rows].transpose(0, 1)

    def forward(self, x: Tensor, seen_rows: Seen) -> Tensor:
        """B × T × D over what is seen to B × T × D."""
        p = self.config.attention_dropout if self.training else 0.0
        if seen_rows.projected is None:
            keys, values = seen_rows.both.chunk(2, dim=1)
            mixed = attend_heads(self._by_head(self.query(x).to(x.dtype)), keys, values, p)
        else:
            queries, keep = self._queries(x, seen_rows.biases), self.config.recompute == "nothing"
            mixed = attend_by_distance(*queries, seen_rows.both, seen_rows.projected, seen_rows.hide, p, keep)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out

    @torch.no_grad()
    def weights(self, x: Tensor, seen_rows: Seen) -> Tensor:
        """B × H × T × S, for inspection."""
        keys, _ = seen_rows.both.chunk(2, dim=1)
        if seen_rows.projected is not None:
            return distance_weights(*self._queries(x, seen_rows.biases), keys, seen_rows.projected, seen_rows.hide)
        return head_weights(self._by_head(self.query(x)), keys)

    def _queries(self, x: Tensor, shared: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        """What meets the keys and what meets the distances: (q + u)/√d, (q + v)/√d; Shaw's: [q; 1]/√d for [E; b]."""
        query, scale = self._by_head(self.query(x).to(x.dtype)), 1 / math.sqrt(self.config.d)
        if self.config.positions == "shaw":
            return (query + self.content_bias[:, None]) * scale, F.pad(query, (0, 1), value=1.0) * scale
        u, v = shared or (self.content_bias, self.distance_bias)
        return (query + u[:, None]) * scale, (query + v[:, None]) * scale

    def _by_head(self, rows: Tensor) -> Tensor:
        """B × S × N·d to B × N × S × d."""
        return rows.view(*rows.shape[:2], rows.shape[2] // self.config.d, self.config.d).transpose(1, 2)

"""Transformer-XL for a single byte: the equations of `transformer_xl`, one vector at a time (why: layers/single.py).

A query that is alone needs no shift: s = K·(q + u)/√d + R·(q + v)/√d, R being the distances' rows as they lie. Nearly
all there is to do is to read keys, values, distances and weights once, so none of them is copied: matrices are the
model's own, which NumPy's library reads by rows almost as fast as by columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from headcount.layers import relative_heads, single
from headcount.layers.memory import Memory, WindowRule
from headcount.layers.single import Affine, Vector, array, softmax, standardised

if TYPE_CHECKING:
    from headcount.models import transformer_xl


class Attention:
    """All heads: one query of each over the memory and itself."""

    def __init__(self, attention: relative_heads.Attention, shared: tuple[Tensor, Tensor] | None) -> None:
        self.heads, self.scale = attention.config.heads, 1 / math.sqrt(attention.config.d)
        biases = shared or (attention.content_bias, attention.distance_bias)
        self.content_bias, self.distance_bias = (array(bias * self.scale) for bias in biases)
        self.query, self.key_value = array(attention.query.weight), array(attention.key_value.weight)
        self.out = array(attention.out.weight)

    def __call__(self, x: Vector, memory: Memory, rule: WindowRule, table: Tensor) -> tuple[Vector, Memory]:
        """D to D, and the memory after it; `table` is r for the rows that are seen, H × S × d."""
        new = self.key_value.dot(x).reshape(1, 2 * self.heads, 1, -1)
        both, memory = memory.append(torch.from_numpy(new), rule)
        rows = array(both)[0]
        query = self.query.dot(x).reshape(self.heads, -1, 1)
        query *= self.scale
        scores = np.matmul(rows[: self.heads], query + self.content_bias[..., None])
        scores += np.matmul(array(table), query + self.distance_bias[..., None])
        mixed = np.matmul(softmax(scores[..., 0])[:, None], rows[self.heads :])
        return self.out.dot(mixed.reshape(-1)), memory


class Layer:
    """Attention and feed-forward, each with its norm after the sum or before itself."""

    def __init__(self, layer: transformer_xl.Layer, shared: tuple[Tensor, Tensor] | None) -> None:
        self.pre, self.eps = layer.pre, layer.attention_norm.eps
        self.attention, self.attention_norm = Attention(layer.attention, shared), Affine(layer.attention_norm)
        self.up, self.up_bias = array(layer.up.weight), array(layer.up.bias)
        self.down, self.down_bias = array(layer.down.weight), array(layer.down.bias)
        self.feed_norm = Affine(layer.feed_norm)

    def __call__(self, h: Vector, memory: Memory, rule: WindowRule, table: Tensor) -> tuple[Vector, Memory]:
        """D to D, and the memory after it."""
        x = self._norm(self.attention_norm, h) if self.pre else h
        looked_up, memory = self.attention(x, memory, rule, table)
        looked_up += h
        h = looked_up if self.pre else self._norm(self.attention_norm, looked_up)
        wide = self.up.dot(self._norm(self.feed_norm, h) if self.pre else h)
        wide += self.up_bias
        np.maximum(wide, 0, out=wide)
        fed: Vector = self.down.dot(wide)
        fed += self.down_bias
        fed += h
        return fed if self.pre else self._norm(self.feed_norm, fed), memory

    def _norm(self, affine: Affine, x: Vector) -> Vector:
        return affine(standardised(x, self.eps))


def applies(model: transformer_xl.TransformerXL, tokens: Tensor, state: transformer_xl.TransformerXLState) -> bool:
    """Whether these tokens are one byte that is read this way: after a state that holds keys and values."""
    config = model.config
    drops = model.training and (config.dropout or config.attention_dropout)
    usual = config.positions == "relative" and not drops
    return usual and state.without_gradients and single.applies(tokens, state.layers[0].buffer)


def through(
    layers: Sequence[Layer], h: Tensor, state: transformer_xl.TransformerXLState, tables: Sequence[Tensor]
) -> tuple[Tensor, list[Memory]]:
    """1 × 1 × D to 1 × 1 × D, and every layer's memory after it."""
    x, after = array(h)[0, 0], []
    for layer, memory, table in zip(layers, state.layers, tables, strict=True):
        x, memory = layer(x, memory, state.rule, table)
        after.append(memory)
    return torch.from_numpy(x)[None, None], after


def prepare(model: transformer_xl.TransformerXL, shared: tuple[Tensor, Tensor] | None) -> tuple[Layer, ...]:
    """Every layer in this form."""
    return tuple(Layer(cast("transformer_xl.Layer", layer), shared) for layer in model.layers)

"""Transformer-XL computed the published way, as the thing to be faster than.

The same function and the same parameters as `headcount.models.transformer_xl` under the window rule "memory", written
as the author's code does it: time first, queries, keys and values projected anew from memory and segment together,
einsum over time-major tensors, the shift by padding, copying and reshaping, scores scaled, masked and normalised as
tensors of their own. Names are the published ones, so that `exchange.legacy` reads its weights and the benchmarks can
show that both compute the same thing before they time it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headcount.models.transformer_xl import TransformerXLConfig


def shift(x: Tensor) -> Tensor:
    """Row i of q × k × B × H moves q - 1 - i places to the left: a column of zeros, a copy, and another shape."""
    zeros = x.new_zeros(x.shape[0], 1, *x.shape[2:])
    padded = torch.cat([zeros, x], dim=1).view(x.shape[1] + 1, x.shape[0], *x.shape[2:])
    return padded[1:].view_as(x)


class Attention(nn.Module):
    """All heads of a layer, everything as a tensor of its own."""

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__()
        inner = config.heads * config.d
        self.heads, self.d, self.drop, self.dropatt = config.heads, config.d, config.dropout, config.attention_dropout
        self.qkv_net = nn.Linear(config.width, 3 * inner, bias=False)
        self.r_net = nn.Linear(config.width, inner, bias=False)
        self.o_net = nn.Linear(inner, config.width, bias=False)
        self.layer_norm = nn.LayerNorm(config.width, config.eps)

    def forward(self, h: Tensor, r: Tensor, biases: tuple[Tensor, Tensor], mask: Tensor, memory: Tensor) -> Tensor:
        length, batch = h.shape[:2]
        query, key, value = self.qkv_net(torch.cat([memory, h], dim=0)).chunk(3, dim=-1)
        query = query[-length:].view(length, batch, self.heads, self.d)
        key, value = (x.view(-1, batch, self.heads, self.d) for x in (key, value))
        distance = self.r_net(r).view(-1, self.heads, self.d)
        content = torch.einsum("ibnd,jbnd->ijbn", query + biases[0], key)
        place = shift(torch.einsum("ibnd,jnd->ijbn", query + biases[1], distance))
        scores = (content + place).mul_(1 / math.sqrt(self.d)).masked_fill_(mask[:, :, None, None], -math.inf)
        weights = F.dropout(F.softmax(scores, dim=1), self.dropatt, self.training)
        mixed = torch.einsum("ijbn,jbnd->ibnd", weights, value).flatten(2)
        return self.layer_norm(h + F.dropout(self.o_net(mixed), self.drop, self.training))


class FeedForward(nn.Module):
    """Two linear layers, a sum, a norm."""

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__()
        self.CoreNet = nn.Sequential(
            nn.Linear(config.width, config.inner),
            nn.ReLU(inplace=True),
            nn.Dropout(config.dropout),
            nn.Linear(config.inner, config.width),
            nn.Dropout(config.dropout),
        )
        self.layer_norm = nn.LayerNorm(config.width, config.eps)

    def forward(self, h: Tensor) -> Tensor:
        return self.layer_norm(h + self.CoreNet(h))


class Layer(nn.Module):
    """Attention and feed-forward."""

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__()
        self.dec_attn, self.pos_ff = Attention(config), FeedForward(config)


class PublishedTransformerXL(nn.Module):
    """The whole model: T × B tokens in, T × B × D out, and a list of what every layer remembers."""

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__()
        self.window, self.drop, self.scale = config.window, config.dropout, math.sqrt(config.width)
        self.word_emb = nn.Module()
        self.word_emb.emb_layers = nn.ModuleList([nn.Embedding(config.vocabulary, config.width)])
        self.crit = nn.Module()
        self.crit.out_layers = nn.ModuleList([nn.Linear(config.width, config.vocabulary)])
        self.crit.out_layers[0].weight = self.word_emb.emb_layers[0].weight
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.r_w_bias, self.r_r_bias = (nn.Parameter(torch.zeros(config.heads, config.d)) for _ in range(2))
        self.pos_emb = nn.Module()
        frequencies = 1 / 10_000 ** (torch.arange(0.0, config.width, 2.0) / config.width)
        self.pos_emb.register_buffer("inv_freq", frequencies)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=config.init_std)

    def forward(self, tokens: Tensor, memories: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        h = F.dropout(self.word_emb.emb_layers[0](tokens) * self.scale, self.drop, self.training)
        memories = [h.new_zeros(0, *h.shape[1:])] * len(self.layers) if memories is None else memories
        length, old = len(tokens), len(memories[0])
        mask = torch.ones(length, old + length, dtype=torch.bool).triu(1 + old)
        angles = torch.outer(torch.arange(old + length - 1, -1, -1.0), self.pos_emb.inv_freq)
        r = F.dropout(torch.cat([angles.sin(), angles.cos()], dim=-1), self.drop, self.training)
        after = []
        for layer, memory in zip(self.layers, memories, strict=True):
            after.append(torch.cat([memory, h], dim=0)[-self.window :].detach())
            h = layer.pos_ff(layer.dec_attn(h, r, (self.r_w_bias, self.r_r_bias), mask, memory))
        return F.dropout(h, self.drop, self.training), after

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Mean nats of the targets."""
        return F.cross_entropy(self.crit.out_layers[0](hidden).flatten(0, 1), targets.flatten())

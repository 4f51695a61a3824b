"""The SHA-RNN computed the published way, as the thing to be faster than.

The same function and the same parameters as `headcount.models.sha_rnn` under the window rule "segment", written as the
author's code does it: `nn.LSTM` time-major, `F.dropout`, scaled copies of the memory for keys and values, materialised
scores, a concatenated memory. Names are the published ones, so that `exchange.legacy` reads its weights and the
benchmarks can show that both compute the same thing before they time it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headcount.models.sha_rnn import ShaRnnConfig

Hidden = tuple[Tensor, Tensor]
EPS = 1e-12


class OverParameterised(nn.Module):
    """What the published code calls `vq`: candidate before gate."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.l1 = nn.Linear(width, 2 * width)

    def forward(self, raw: Tensor) -> Tensor:
        candidate, gate = self.l1(raw).chunk(2, dim=-1)
        return torch.sigmoid(gate) * torch.tanh(candidate)


class Attention(nn.Module):
    """q·kᵀ, softmax, dropout, times v: everything as a tensor of its own."""

    def __init__(self, config: ShaRnnConfig) -> None:
        super().__init__()
        width = config.width
        self.dropout = config.dropout
        self.qs, self.ks, self.vs = (nn.Parameter(torch.zeros(1, 1, width)) for _ in range(3))
        self.q, self.qln = nn.Linear(width, width), nn.LayerNorm(width, EPS)
        self.vq = OverParameterised(width)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        query = self.qln(self.q(x)) * torch.sigmoid(self.qs)
        key = memory * torch.sigmoid(self.ks)
        value = memory * self.vq(torch.sigmoid(self.vs))
        query = F.dropout(query, self.dropout, self.training).transpose(0, 1)
        value = F.dropout(value, self.dropout, self.training).transpose(0, 1)
        scores = query @ key.permute(1, 2, 0) / math.sqrt(x.shape[-1]) + mask
        weights = F.dropout(torch.softmax(scores, dim=-1), self.dropout, self.training)
        return (weights @ value).transpose(0, 1)


class Boom(nn.Module):
    """Up, the sigmoid GELU, dropout, and the chunks summed."""

    def __init__(self, config: ShaRnnConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.linear1 = nn.Linear(config.width, config.boom * config.width)

    def forward(self, x: Tensor) -> Tensor:
        u = self.linear1(x)
        u = F.dropout(u * torch.sigmoid(1.702 * u), self.dropout, self.training)
        return u.view(*x.shape[:-1], -1, x.shape[-1]).sum(dim=-2)


class Block(nn.Module):
    """LSTM, attention over the concatenated memory, Boom."""

    def __init__(self, config: ShaRnnConfig, looks_back: bool) -> None:
        super().__init__()
        width = config.width
        self.dropout, self.window = config.dropout, config.window
        self.rnn = nn.LSTM(width, width)
        self.lnstart, self.lnmid, self.lnmem, self.lnff, self.lnxff = (nn.LayerNorm(width, EPS) for _ in range(5))
        self.attn = Attention(config) if looks_back else None
        self.ff = Boom(config)

    def forward(self, x: Tensor, hidden: Hidden | None, memory: Tensor | None) -> tuple[Tensor, Hidden, Tensor | None]:
        r, hidden = self.rnn(self.lnstart(x), hidden)
        h = F.dropout(r, self.dropout, self.training)
        if self.attn is not None:
            new, query = self.lnmem(h), self.lnmid(h)
            length = len(x)
            whole = new if memory is None else torch.cat([memory[-(self.window - length) :], new], dim=0)
            mask = torch.full((length, len(whole)), -math.inf).triu(len(whole) - length + 1)
            h = query + F.dropout(self.attn(query, whole, mask), self.dropout, self.training)
            memory = whole[-self.window :]
        y = self.lnff(h) + F.dropout(self.ff(self.lnxff(h)), self.dropout, self.training)
        return y, hidden, memory


class PublishedShaRnn(nn.Module):
    """The whole model: T × B tokens in, T × B × D out, and lists of what it carries."""

    def __init__(self, config: ShaRnnConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.encoder = nn.Embedding(config.vocabulary, config.width)
        self.decoder = nn.Linear(config.width, config.vocabulary)
        self.decoder.weight = self.encoder.weight
        self.blocks = nn.ModuleList(Block(config, i in config.attention) for i in range(config.blocks))

    def forward(
        self, tokens: Tensor, carried: list[tuple[Hidden | None, Tensor | None]] | None
    ) -> tuple[Tensor, list[tuple[Hidden | None, Tensor | None]]]:
        x = F.dropout(self.encoder(tokens), self.dropout, self.training)
        after: list[tuple[Hidden | None, Tensor | None]] = []
        for block, (hidden, memory) in zip(self.blocks, carried or [(None, None)] * len(self.blocks), strict=True):
            x, hidden, memory = block(x, hidden, memory)
            after.append((hidden, memory))
        return F.dropout(x, self.dropout, self.training), after

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Mean nats of the targets."""
        return F.cross_entropy(self.decoder(hidden).flatten(0, 1), targets.flatten())


def detach(carried: list[tuple[Hidden | None, Tensor | None]]) -> list[tuple[Hidden | None, Tensor | None]]:
    """Cut the graph after a step."""
    return [
        (None if hidden is None else (hidden[0].detach(), hidden[1].detach()), None if m is None else m.detach())
        for hidden, m in carried
    ]

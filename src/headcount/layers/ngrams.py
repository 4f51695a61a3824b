"""Vectors for the last n symbols, hashed into tables (not in the paper; an option of our own).

For every order n there is a table of R rows. The vectors of all orders stand side by side, as wide as the stream:

    e_t = [T₂[h₂]; T₃[h₃]; …]        h_n = ⌊(Σ_{j<n} a_j·(x_{t-j} + 1) mod 2⁶⁴) / 2³²⌋ mod R

with fixed odd 64-bit numbers a_j. A look-up multiplies nothing, so the tables hold what a model that learns for minutes
would need width for: which few symbols usually stand together. Rows are shared by whatever hashes to them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NOTHING = -1
"""Stands for a symbol before the first."""


class Ngrams(nn.Module):
    """The tables of all orders, one below the other."""

    def __init__(self, orders: tuple[int, ...], rows: int, width: int) -> None:
        super().__init__()
        self.orders, self.rows = orders, rows
        self.table = nn.Parameter(torch.empty(len(orders) * rows, width // len(orders)))
        nn.init.normal_(self.table, std=0.02)

    @property
    def reach(self) -> int:
        """How many symbols before the current one are looked at."""
        return max(self.orders) - 1

    def forward(self, tokens: Tensor, recent: Tensor) -> Tensor:
        """B × T tokens, after the B × reach before them, to B × T × D."""
        return F.embedding(self.places(tokens, recent), self.table).flatten(2)

    def places(self, tokens: Tensor, recent: Tensor) -> Tensor:
        """Which row of the table every order takes: B × T × orders."""
        text = torch.cat([recent, tokens], dim=1)
        newest_first = text.unfold(1, self.reach + 1, 1).flip(-1)
        device = tokens.device
        sums = ((newest_first + 1) * _numbers(self.reach + 1).to(device)).cumsum(-1)
        hashes = sums[..., [order - 1 for order in self.orders]] >> 32 & 0x7FFFFFFF
        return hashes % self.rows + self.rows * torch.arange(len(self.orders), device=device)


def before_the_first(batch: int, reach: int, device: torch.device) -> Tensor:
    """What came before a text's first symbol: nothing."""
    return torch.full((batch, reach), NOTHING, dtype=torch.long, device=device)


def remember(recent: Tensor, tokens: Tensor) -> Tensor:
    """The last symbols after these tokens."""
    return torch.cat([recent, tokens], dim=1)[:, tokens.shape[1] :]


def _numbers(count: int) -> Tensor:
    """Fixed odd numbers of 64 bits: splitmix64 of 1, 2, 3 …"""
    mask, numbers = (1 << 64) - 1, []
    for index in range(1, count + 1):
        z = index * 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        z = (z ^ z >> 31) | 1
        numbers.append(z - (1 << 64) if z >> 63 else z)
    return torch.tensor(numbers)

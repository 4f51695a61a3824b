"""Heads own the vocabulary: they turn hidden vectors into probabilities, and tied ones tokens into vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Softmax(nn.Module):
    """p = softmax(h·Wᵀ + b), W a V × D table that the model draws.

    Probabilities are computed in float32 at least, whatever the rest runs in.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    @property
    def flops(self) -> int:
        """Forward, per token."""
        return 2 * self.weight.numel()

    def _logits(self, hidden: Tensor) -> Tensor:
        logits = F.linear(hidden, self.weight, self.bias)
        return logits if logits.dtype == torch.float64 else logits.float()

    def nll(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Nats of every target: B × T × D and B × T to B × T."""
        logits = self._logits(hidden)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Nats of every symbol, negative: B × T × D to B × T × V."""
        return F.log_softmax(self._logits(hidden), dim=-1)


class TiedSoftmax(Softmax):
    """One V × D table for both ends: e = W[x], p = softmax(h·Wᵀ + b)."""

    def embed(self, tokens: Tensor) -> Tensor:
        """B × T tokens to B × T × D vectors."""
        return F.embedding(tokens, self.weight)

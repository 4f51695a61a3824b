"""Layer norm: γ⊙(x - mean)/√(variance + ε) + β."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """`nn.LayerNorm` without a detour that shows when a single byte is read."""

    def forward(self, x: Tensor) -> Tensor:
        """… × D to … × D."""
        return torch.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

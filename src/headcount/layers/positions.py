"""Positions as vectors of sines and cosines: S(δ) = [sin(δ·f); cos(δ·f)], f_t = 10000^(-2t/D), t = 0 … D/2 - 1.

The two halves stand side by side; they are not interleaved. Distances are exact in float32 only: in bfloat16 four
thousand of them collapse to a few hundred, so nothing narrower is ever used.
"""

from __future__ import annotations

import torch
from torch import Tensor


def frequencies(width: int) -> Tensor:
    """f, D/2 numbers."""
    return 1.0 / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)


def sinusoid(distances: Tensor, frequency: Tensor) -> Tensor:
    """N distances to N × D."""
    precise = torch.promote_types(frequency.dtype, torch.float32)
    angles = distances.to(precise)[:, None] * frequency.to(precise)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)

"""Backward through out = W·v with W = P⊙K and P = softmax(s), where K is a mask of dropout over 1 - p:

    dS = P⊙(dP - Σ g⊙out)      dP = (g·vᵀ)⊙K      g the gradient of out

The sum goes over a row of g⊙out; it is the Σ P⊙dP of a softmax's gradient, for W·v is `out` again.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headcount.layers.dropout import factors


def scores_gradient(
    gradient: Tensor,
    through: Tensor,
    values: Tensor,
    weights: Tensor,
    kept: Tensor | None,
    p: float,
    out: Tensor | None = None,
) -> Tensor:
    """dS, N × T × S, of g (N × T × D), Σ g⊙out (N × T × 1), v (N × S × D) and P; into `out` if it is given."""
    if kept is None:
        scores = torch.baddbmm(through, gradient, values.transpose(1, 2), beta=-1, out=out)
    else:
        scores = torch.bmm(gradient, values.transpose(1, 2), out=out)
        scores.mul_(factors(kept, scores.dtype, p)).sub_(through)
    return scores.mul_(weights)

"""Layers that keep only what they are given in training, and run again in the backward pass, a few streams at a time.

What a layer needs for a moment (its keys and values, its wide activations and their gradients) then shrinks with the
streams that run together. That counts twice: glibc before 2.38 cannot put an aligned block where one of the same size
was freed, so the larger these blocks are, the more of the heap lies idle beside them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

AT_ONCE = 3 << 18
"""Numbers of the longer input that go through a layer together, about, if streams can be divided that far."""


def run_twice(layer: Callable[[Tensor, Tensor], Tensor], x: Tensor, rows: Tensor) -> Tensor:
    """layer(x, rows), B × T × D and B × S × D to B × T × D; streams must not see each other in it."""
    parts = -(-rows.numel() // AT_ONCE)
    inputs = zip(x.chunk(parts), rows.chunk(parts), strict=True)
    outs = [checkpoint(layer, *some, use_reentrant=False) for some in inputs]
    return outs[0] if len(outs) == 1 else torch.cat(outs)

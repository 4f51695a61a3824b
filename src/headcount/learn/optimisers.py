"""From a recipe's `[optimiser]` to a torch optimiser, and its moments to named tensors and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from headcount.learn.min_trust_lamb import MinTrustLamb
from headcount.tables import AdamWTable, OptimiserTable, SgdTable

Kind = TypeVar("Kind", bound=Optimizer)


def build(table: OptimiserTable, model: nn.Module) -> Optimizer:
    """The optimiser for all parameters; AdamW decays matrices only."""
    if isinstance(table, AdamWTable):
        matrices = [p for p in model.parameters() if p.ndim >= 2]
        vectors = [p for p in model.parameters() if p.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": table.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        return uncompiled(AdamW)(groups, lr=table.lr, betas=table.betas, eps=table.eps, fused=True)
    if isinstance(table, SgdTable):
        return uncompiled(SGD)(model.parameters(), lr=table.lr, momentum=table.momentum, nesterov=table.nesterov)
    return uncompiled(MinTrustLamb)(
        model.parameters(),
        lr=table.lr,
        betas=table.betas,
        eps=table.eps,
        weight_decay=table.weight_decay,
        min_trust=table.min_trust,
    )


def uncompiled(kind: type[Kind]) -> type[Kind]:
    """The same optimiser without torch's wrappers around its methods.

    They import torch's compiler, which costs a second and 90 MB, only to tell it to leave the optimiser alone.
    """
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in ("add_param_group", "zero_grad")}
    return type(kind.__name__, (kind,), {**methods, "step": torch.no_grad()(inspect.unwrap(kind.step))})


def to_tensors(optimiser: Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Every moment by the name of its parameter: `blocks.0.lstm.weight_ih_l0/exp_avg`."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def from_tensors(optimiser: Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put the moments back, each into memory of its own."""
    known = dict(model.named_parameters())
    for full_name, tensor in tensors.items():
        name, _, key = full_name.rpartition("/")
        like = known[name] if tensor.ndim else torch.empty((), device=known[name].device)
        optimiser.state[known[name]][key] = torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)

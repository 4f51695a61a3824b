"""Mean nats under several classifiers of the same vectors, without keeping a logit.

Where every layer of a deep model predicts, logits of all layers would be as much memory as the layers themselves. Here
they live for a slice of rows at a time: what the backward pass needs, p - 1[target] times a matrix, is computed while
they are there. That takes the proportion in which the means will be added up, which is known beforehand; should they
be differentiated in another one, the slices are worked through again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from headcount.layers.heads import Softmax

ROWS = 1024
"""In a slice: logits over 256 symbols stay in a cache."""


def mean_nats(
    hidden: Tensor, classifiers: Sequence[Softmax], targets: Sequence[Tensor], weights: Sequence[float]
) -> Tensor:
    """Of B × T × D vectors under K classifiers, each with targets (B × T) of its own: K means.

    `weights` say in what proportion the means are going to be differentiated.
    """
    if not torch.is_grad_enabled():
        return _plain(hidden, classifiers, targets)
    if hidden.device.type != "cpu":
        return cast(Tensor, checkpoint(_plain, hidden, classifiers, targets, use_reentrant=False))
    parameters = [parameter for classifier in classifiers for parameter in (classifier.weight, classifier.bias)]
    flat, stacked = hidden.flatten(0, -2), torch.stack([each.flatten() for each in targets])
    means: Tensor = _Means.apply(tuple(weights), stacked, flat, *parameters)  # type: ignore[no-untyped-call]
    return means


def _plain(hidden: Tensor, classifiers: Sequence[Softmax], targets: Sequence[Tensor]) -> Tensor:
    pairs = zip(classifiers, targets, strict=True)
    return torch.stack([classifier.nll(hidden, each).mean() for classifier, each in pairs])


class _Means(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, weights: tuple[float, ...], targets: Tensor, flat: Tensor, *parameters: Tensor) -> Tensor:
        ctx.weights = weights
        means, gradients = _work_through(weights, targets, flat, parameters)
        ctx.save_for_backward(targets, flat, *parameters, *gradients)
        return means

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:
        count = 2 * len(ctx.weights)
        targets, flat, *rest = ctx.saved_tensors
        parameters, gradients = rest[:count], rest[count:]
        scale = upper[0] / ctx.weights[0]
        if upper.equal(upper.new_tensor(ctx.weights) * scale):
            return None, None, *(gradient * scale for gradient in gradients)
        _, gradients = _work_through(tuple(upper.tolist()), targets, flat, parameters)
        return None, None, *gradients


def _work_through(
    weights: tuple[float, ...], targets: Tensor, flat: Tensor, parameters: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """The means, and the gradients of their weighted sum: of the rows (N × D), then of every W and b."""
    count = len(flat)
    of_flat, of_parameters = torch.zeros_like(flat), [torch.zeros_like(parameter) for parameter in parameters]
    sums = flat.new_zeros(len(weights))
    for begin in range(0, count, ROWS):
        rows, out = flat[begin : begin + ROWS], of_flat[begin : begin + ROWS]
        for k, weight in enumerate(weights):
            matrix, bias = parameters[2 * k : 2 * k + 2]
            of_matrix, of_bias = of_parameters[2 * k : 2 * k + 2]
            chosen, share = targets[k, begin : begin + ROWS, None], weight / count
            logs = torch.log_softmax(torch.addmm(bias, rows, matrix.t()), dim=-1)
            sums[k] -= logs.gather(1, chosen).sum()
            difference = logs.exp_().scatter_add_(1, chosen, logs.new_full(chosen.shape, -1.0))
            out.addmm_(difference, matrix, alpha=share)
            of_matrix.addmm_(difference.t(), rows, alpha=share)
            of_bias.add_(difference.sum(0), alpha=share)
    return sums / count, [of_flat, *of_parameters]

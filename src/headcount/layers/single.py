"""One vector at a time, in NumPy: how a single byte of a single text is read on a processor.

Every operation is tiny then, and calling it through torch costs more than doing it. What remains is reading matrices:
NumPy's library does that several times as fast as torch's on processors that are not Intel's, most of all by columns.
So a model may keep its layers in this form in a state: matrices by columns, norms folded into what they feed. They are
made when the first single byte is read, and belong to that state: a new `start()` sees the weights of its moment.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from headcount.layers import recurrent

Vector = npt.NDArray[Any]


def applies(tokens: Tensor, weight: Tensor) -> bool:
    """Whether these tokens are one byte that may be read this way: no gradients, on a CPU, in a dtype NumPy has."""
    return (
        tokens.numel() == 1
        and not torch.is_grad_enabled()
        and weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled("cpu")
    )


def array(tensor: Tensor) -> Vector:
    """The same numbers in the same memory."""
    numbers: Vector = tensor.detach().numpy()
    return numbers


def standardised(x: Vector, eps: float) -> Vector:
    """(x - mean)/√(variance + ε)."""
    centred = x - np.add.reduce(x) / len(x)
    scaled: Vector = centred * (1 / math.sqrt(centred.dot(centred) / len(x) + eps))
    return scaled


def sigmoid(x: Vector) -> Vector:
    """σ, without the exponential that overflows."""
    y: Vector = np.tanh(0.5 * x)
    y += 1
    y *= 0.5
    return y


def softmax(x: Vector) -> Vector:
    """Probabilities along the last dimension."""
    y: Vector = np.exp(x - np.maximum.reduce(x, axis=-1, keepdims=True))
    y /= np.add.reduce(y, axis=-1, keepdims=True)
    return y


class Affine:
    """γ⊙x + β: a layer norm's second half; a scale may be folded in."""

    def __init__(self, norm: nn.LayerNorm, scale: Tensor | float = 1.0) -> None:
        self.gain, self.shift = array(norm.weight * scale).copy(), array(norm.bias * scale).copy()

    def __call__(self, x: Vector) -> Vector:
        """D to D."""
        y: Vector = x * self.gain
        y += self.shift
        return y


class Linear:
    """W·x + b; a norm's gain and shift before it may be folded in: W·(γ⊙x + β) + b = (W⊙γ)·x + (W·β + b)."""

    def __init__(self, weight: Tensor, bias: Tensor, norm: nn.LayerNorm | None = None) -> None:
        if norm is not None:
            weight, bias = weight * norm.weight, weight @ norm.bias + bias
        self.columns, self.bias = np.asfortranarray(array(weight)), array(bias).copy()

    def __call__(self, x: Vector) -> Vector:
        """D to N."""
        y: Vector = self.columns.dot(x)
        y += self.bias
        return y


class LSTM:
    """One step of an LSTM whose input comes through a norm."""

    def __init__(self, lstm: recurrent.LSTM, norm: nn.LayerNorm) -> None:
        input_weight, hidden_weight, input_bias, hidden_bias = cast(list[Tensor], lstm._flat_weights)
        self.input = Linear(input_weight, input_bias + hidden_bias, norm)
        self.recurrent = np.asfortranarray(array(hidden_weight))

    def __call__(self, x: Vector, state: recurrent.LSTMState) -> tuple[Vector, recurrent.LSTMState]:
        """D to D, and the state after it."""
        gates = self.input(x)
        gates += self.recurrent.dot(array(state.h)[0])
        i, f, g, o = gates.reshape(4, -1)
        c = sigmoid(f) * array(state.c)[0] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return h, recurrent.LSTMState(torch.from_numpy(h)[None], torch.from_numpy(c)[None])

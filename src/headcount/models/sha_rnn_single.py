"""The SHA-RNN for a single byte: the equations of `sha_rnn`, one vector at a time (why: layers/single.py).

Norms that read the same vector share its mean and variance; a norm that only feeds a matrix is folded into it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from headcount.layers.boom import SHARPNESS
from headcount.layers.memory import Memory
from headcount.layers.single import LSTM, Affine, Linear, Vector, array, sigmoid, softmax, standardised

if TYPE_CHECKING:
    from headcount.models import sha_rnn


class Attention:
    """The head: one query over the memory."""

    def __init__(self, attention: sha_rnn.Attention) -> None:
        width = attention.query.in_features
        gates = attention.query_gate.sigmoid() * attention.key_gate.sigmoid() / math.sqrt(width)
        self.rule, self.eps = attention.rule, attention.query_norm.eps
        self.query = Linear(attention.query.weight, attention.query.bias)
        self.query_norm = Affine(attention.query_norm, gates)
        self.value = array(attention.value()).copy()

    def __call__(self, x: Vector, new: Vector, memory: Memory) -> tuple[Vector, Memory]:
        """The query's input and the new row (D each) to D, and the memory after it."""
        rows, memory = memory.append(torch.from_numpy(new)[None, None], self.rule)
        there, query = array(rows)[0], self.query_norm(standardised(self.query(x), self.eps))
        looked_up: Vector = softmax(there.dot(query)).dot(there)
        looked_up *= self.value
        return looked_up, memory


class Block:
    """LSTM, attention if it looks back, Boom."""

    def __init__(self, block: sha_rnn.Block) -> None:
        self.eps = block.start_norm.eps
        self.lstm = LSTM(block.lstm, block.start_norm)
        self.attention = None if block.attention is None else Attention(block.attention)
        if block.attention is not None:
            self.mid_norm, self.memory_norm = Affine(block.mid_norm), Affine(block.memory_norm)
        self.skip_norm = Affine(block.skip_norm)
        self.up = Linear(block.boom.up.weight, block.boom.up.bias, block.boom_norm)

    def __call__(self, x: Vector, state: sha_rnn.BlockState) -> tuple[Vector, sha_rnn.BlockState]:
        """D to D, and the state after it."""
        h, lstm = self.lstm(standardised(x, self.eps), state.lstm)
        memory = state.memory
        if self.attention is not None:
            h = standardised(h, self.eps)
            query = self.mid_norm(h)
            looked_up, memory = self.attention(query, self.memory_norm(h), memory)
            h = query + looked_up
        h = standardised(h, self.eps)
        u = self.up(h)
        u *= sigmoid(SHARPNESS * u)
        return self.skip_norm(h) + np.add.reduce(u.reshape(-1, len(h))), type(state)(lstm, memory)


def prepare(model: sha_rnn.ShaRnn) -> tuple[Block, ...]:
    """Every block in this form, with the weights of this moment."""
    return tuple(Block(block) for block in model.blocks)  # type: ignore[arg-type]

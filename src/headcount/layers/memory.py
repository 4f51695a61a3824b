"""What attention may look back on: rows of the past, and which of them a query sees.

Rules for a window of W rows and a segment of T new ones:

- `exact`: query t sees the last W rows, itself included, however the text is cut.
- `segment` (the SHA-RNN as published): before a segment old rows are cut to W - T, then all of them are seen. A query
  sees W - T + 1 … W rows, which depends on T; T > W is refused.
- `memory` (Transformer-XL as published): W old rows whatever T is, then all of them are seen. A query sees W + 1 …
  W + T rows.

With gradients on, rows are concatenated into a new tensor. With gradients off they are written behind the old ones
into a buffer of twice the window, and moved back to its beginning when it is full: contiguous, at one row of copying
per new row. Time is the last dimension but one: rows are B × S × D, or B × H × S × D where heads have their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headcount.layers.state import State

LEAST_ROOM = 256

WindowRule = Literal["exact", "segment", "memory"]


@dataclass
class Memory(State):
    """The rows in use are `buffer[..., begin:end, :]`, oldest first."""

    buffer: Tensor
    begin: int
    end: int
    window: int
    owned: bool = False
    """The buffer came from a call with gradients off, and the next such call may write into it."""
    spent: bool = False
    """That call has come: its rows are in the buffer now, and this memory must not be used again."""

    @classmethod
    def empty(cls, batch: int, width: int, window: int, like: Tensor, heads: int | None = None) -> Memory:
        """No rows yet; length 0 is a length."""
        middle = () if heads is None else (heads,)
        return cls(like.new_empty(batch, *middle, 0, width), 0, 0, window)

    @classmethod
    def of(cls, rows: Tensor, window: int) -> Memory:
        """These rows, oldest first."""
        return cls(rows, 0, rows.shape[-2], window)

    @property
    def length(self) -> int:
        """S: how many rows are remembered."""
        return self.end - self.begin

    @property
    def rows(self) -> Tensor:
        """B × S × D: what is remembered."""
        return self.buffer[..., self.begin : self.end, :]

    def sees(self, length: int, rule: WindowRule) -> int:
        """How many rows there are for a segment of T new ones, these included."""
        return min(self.length + length, self.sees_at_most(length, rule))

    def sees_at_most(self, length: int, rule: WindowRule) -> int:
        """How many there are for such a segment once the window is full."""
        return {"exact": self.window - 1, "segment": self.window - length, "memory": self.window}[rule] + length

    def append(self, new: Tensor, rule: WindowRule) -> tuple[Tensor, Memory]:
        """Remember `new` (B × T × D): the rows it sees, itself included, and the memory after it."""
        length = new.shape[-2]
        if self.spent:
            raise RuntimeError("this state was used already, with gradients off: clone() it to branch")
        if rule == "segment" and length > self.window:
            raise ValueError(f"a segment of {length} is longer than the window of {self.window} (rule 'segment')")
        old = self.sees(length, rule) - length
        if torch.is_grad_enabled():
            keys = torch.cat([self.buffer[..., self.end - old : self.end, :], new], dim=-2)
            kept = min(old + length, self.window)
            after = Memory.of(keys[..., old + length - kept :, :], self.window)
        else:
            after = self._write(new, old)
            keys = after.rows
            after.begin = max(after.begin, after.end - self.window)
        return keys, after

    def _write(self, new: Tensor, old: int) -> Memory:
        """Put `new` behind the last `old` rows, in this buffer if it is ours and has room."""
        length = new.shape[-2]
        buffer, begin = self.buffer, self.end - old
        if not self.owned or self.end + length > buffer.shape[-2]:
            # Twice the window in the end; a text that is shorter than the window never needs it.
            room = min(self.window + max(self.window, length), max(2 * (old + length), LEAST_ROOM))
            # The old rows may overlap their new place, so they move through a copy.
            recent = buffer[..., begin : self.end, :].clone()
            if not self.owned or buffer.shape[-2] < room:
                buffer = new.new_empty(*new.shape[:-2], room, new.shape[-1])
            buffer[..., :old, :] = recent
            begin = 0
        buffer[..., begin + old : begin + old + length, :] = new
        self.spent = self.owned
        return Memory(buffer, begin, begin + old + length, self.window, owned=True)

    def detach(self) -> Memory:
        """The same rows without their graph; a buffer that may be written into goes along."""
        self.spent = self.owned
        return Memory(self.buffer.detach(), self.begin, self.end, self.window, self.owned)

    def clone(self) -> Memory:
        """A copy of the rows in use only."""
        return Memory.of(self.rows.clone(), self.window)

    def to_tensors(self) -> dict[str, Tensor]:
        """The rows in use, without the room around them."""
        return {"rows": self.rows.detach().contiguous(), "window": torch.tensor(self.window)}

    def from_tensors(self, tensors: dict[str, Tensor]) -> Memory:  # type: ignore[override]
        """What `to_tensors` wrote, in this memory's dtype and on its device."""
        rows = tensors["rows"]
        return Memory.of(self.buffer.new_empty(rows.shape).copy_(rows), int(tensors["window"]))


def seen(length: int, rows: int, window: int | None, device: torch.device) -> Tensor | None:
    """T × S, true where one of the last T of S rows sees a row: not the future, and of the past no more than `window`
    rows, itself included (None: all that are there). None if all are seen.
    """
    if length == 1:
        return None
    key = torch.arange(rows, device=device)
    query = key[-length:, None]
    past = key <= query
    return past if window is None else past & (key > query - window)

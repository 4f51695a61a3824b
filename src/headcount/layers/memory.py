"""What attention may look back on: rows of the past, and which of them a query sees.

Rules for a window of W rows and a segment of T new ones:

- `exact`: query t sees the last W rows, itself included, however the text is cut.
- `segment` (the SHA-RNN as published): before a segment old rows are cut to W - T, then all of them are seen. A query
  sees W - T + 1 … W rows, which depends on T; T > W is refused.

With gradients on, rows are concatenated into a new tensor. With gradients off they are written behind the old ones
into a buffer of twice the window, and moved back to its beginning when it is full: contiguous, at one row of copying
per new row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headcount.layers.state import State

LEAST_ROOM = 256

WindowRule = Literal["exact", "segment"]


@dataclass
class Memory(State):
    """The rows in use are `buffer[..., begin:end, :]`, oldest first: B × S × D, or B × H × S × D with heads."""

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
        shape = (batch, 0, width) if heads is None else (batch, heads, 0, width)
        return cls(like.new_empty(shape), 0, 0, window)

    @property
    def rows(self) -> Tensor:
        """… × S × D: what is remembered."""
        return self.buffer[..., self.begin : self.end, :]

    def append(self, new: Tensor, rule: WindowRule) -> tuple[Tensor, Tensor | None, Memory]:
        """Remember `new` (… × T × D): the rows it sees, itself included; the T × S mask; the memory after it."""
        length = new.shape[-2]
        if self.spent:
            raise RuntimeError("this state was used already, with gradients off: clone() it to branch")
        if rule == "segment" and length > self.window:
            raise ValueError(f"a segment of {length} is longer than the window of {self.window} (rule 'segment')")
        most_old = self.window - (length if rule == "segment" else 1)
        old = min(self.end - self.begin, most_old)
        if torch.is_grad_enabled():
            keys = torch.cat([self.buffer[..., self.end - old : self.end, :], new], dim=-2)
            kept = min(old + length, self.window)
            after = Memory(keys[..., old + length - kept :, :], 0, kept, self.window)
        else:
            after = self._write(new, old)
            keys = after.rows
            after.begin = max(after.begin, after.end - self.window)
        return keys, _mask(length, old, self.window, new.device), after

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
        return Memory(self.rows.clone(), 0, self.end - self.begin, self.window)

    def to_tensors(self) -> dict[str, Tensor]:
        """The rows in use, without the room around them."""
        return {"rows": self.rows.detach().contiguous(), "window": torch.tensor(self.window)}

    def from_tensors(self, tensors: dict[str, Tensor]) -> Memory:  # type: ignore[override]
        """What `to_tensors` wrote, in this memory's dtype and on its device."""
        rows = tensors["rows"]
        buffer = self.buffer.new_empty(rows.shape).copy_(rows)
        return Memory(buffer, 0, rows.shape[-2], int(tensors["window"]))


def _mask(length: int, old: int, window: int, device: torch.device) -> Tensor | None:
    """T × S, true where a query sees a row: not the future, and no more than `window` rows. None if all are seen."""
    if length == 1:
        return None
    query = torch.arange(old, old + length, device=device)[:, None]
    key = torch.arange(old + length, device=device)[None, :]
    return (key <= query) & (key > query - window)

"""What a model carries from one call to the next: a plain nested structure of tensors.

A state is a dataclass whose fields are tensors (batch first), whole numbers, flags, states, or tuples of states. The
base class walks the fields, so that a model only declares them. Modules hold parameters and nothing else. A field that
is marked NOT_CARRIED is something that can be made again from the model: it goes along, but is never saved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor

T = TypeVar("T")
NOT_CARRIED: Mapping[str, bool] = {"carried": False}


class State:
    """Base of all states; subclasses are dataclasses."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same structure with every tensor changed."""
        fields = {f.name: _map(getattr(self, f.name), change) for f in dataclasses.fields(cast(Any, self))}
        return cast(Self, dataclasses.replace(cast(Any, self), **fields))

    def detach(self) -> Self:
        """Cut the graph: the next call's gradients end here."""
        return self.map(Tensor.detach)

    def clone(self) -> Self:
        """A copy that lives on its own: how one branches from a state that is used once."""
        return self.map(Tensor.clone)

    def select(self, rows: Tensor) -> Self:
        """Some of the streams, by their numbers."""
        return self.map(lambda tensor: tensor.index_select(0, rows.to(tensor.device)))

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors as they are allocated."""
        return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(self))

    def to_tensors(self) -> dict[str, Tensor]:
        """A flat mapping from names to tensors; numbers and flags become tensors of no dimension."""
        flat: dict[str, Tensor] = {}
        for name in self._carried():
            _flatten(name, getattr(self, name), flat)
        return flat

    def from_tensors(self, tensors: Mapping[str, Tensor]) -> Self:
        """The state that `to_tensors` wrote; `self` lends its structure, dtype and device."""
        fields = {name: _restore(name, getattr(self, name), tensors) for name in self._carried()}
        return cast(Self, dataclasses.replace(cast(Any, self), **fields))

    def _carried(self) -> list[str]:
        return [f.name for f in dataclasses.fields(cast(Any, self)) if f.metadata.get("carried", True)]


def _map(value: T, change: Callable[[Tensor], Tensor]) -> T:
    if isinstance(value, Tensor):
        return cast(T, change(value))
    if isinstance(value, State):
        return cast(T, value.map(change))
    if isinstance(value, tuple):
        return cast(T, tuple(_map(v, change) for v in value))
    return value


def _tensors(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, State):
        value = tuple(getattr(value, f.name) for f in dataclasses.fields(cast(Any, value)))
    return [tensor for v in value for tensor in _tensors(v)] if isinstance(value, tuple) else []


def _flatten(name: str, value: object, flat: dict[str, Tensor]) -> None:
    if isinstance(value, Tensor):
        flat[name] = value.detach().contiguous()
    elif isinstance(value, State):
        for inner, tensor in value.to_tensors().items():
            flat[f"{name}.{inner}"] = tensor
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            _flatten(f"{name}.{index}", part, flat)
    else:
        flat[name] = torch.tensor(value)


def _restore(name: str, like: object, tensors: Mapping[str, Tensor]) -> object:
    if isinstance(like, Tensor):
        # A fresh tensor filled by copying: a mapped tensor's alignment can change the bits of a product.
        return torch.empty_like(tensors[name], dtype=like.dtype, device=like.device).copy_(tensors[name])
    if isinstance(like, State):
        inner = {key[len(name) + 1 :]: value for key, value in tensors.items() if key.startswith(f"{name}.")}
        return like.from_tensors(inner)
    if isinstance(like, tuple):
        return tuple(_restore(f"{name}.{index}", part, tensors) for index, part in enumerate(like))
    return type(like)(tensors[name].item())  # type: ignore[call-arg]

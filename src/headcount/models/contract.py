"""One contract for every model: `forward(tokens_BT, state) -> (hidden_BTD, state)`; a head owns the vocabulary.

State goes in and comes out; a module holds parameters only. Truncated back-propagation, a memory, generation and
compression are then the same call. What every model promises is tested by one file, tests/contract.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headcount.layers.state import State


@dataclass(kw_only=True)
class ModelState(State):
    """Base of every model's state."""

    without_gradients: bool = False
    """The call that made it had gradients off: it may hold another form, may be written into, and is used once."""


@dataclass(frozen=True)
class Loss:
    """Named parts of an objective, in nats per token, and their weights. `nll` is the part that is reported."""

    parts: Mapping[str, Tensor]
    weights: Mapping[str, float]

    @property
    def total(self) -> Tensor:
        """What is differentiated."""
        return sum((self.weights[name] * part for name, part in self.parts.items()), start=torch.zeros(()))


@dataclass(frozen=True)
class Spec:
    """What a model costs and what it can see."""

    parameters: int
    """In training."""
    parameters_in_use: int
    """After `finished()`."""
    heads: int
    receptive_field: int | None
    """The most bytes that a prediction can depend on at the given segment; None is unbounded."""
    state_bytes: int
    """Per stream, window full."""
    flops: int
    """Forward, per token, two for a multiply-add: dense, full window, at the given segment."""
    recurrent_flops: int
    """The part of `flops` that recurrent layers take (no flop counter knows it)."""


@dataclass(frozen=True)
class Part:
    """A layer, as a picture of the model shows it."""

    name: str
    sizes: tuple[int, ...]
    """Widths from input to output."""
    block: int | None = None
    """Which block it belongs to; None below and above them."""
    looks_back: int | None = None
    """How many rows it may attend to."""
    state: int = 0
    """Numbers that it carries from byte to byte, per stream."""


class Model(nn.Module):
    """Base of every model: the checks that all share, and the default objective."""

    Config: ClassVar[type]
    lookahead: ClassVar[int] = 1
    """How many symbols beyond a segment the objective reads."""

    @property
    def limits(self) -> tuple[str, ...]:
        """What `start` takes by name, for evaluation, in place of the Config's."""
        return ("window",)

    @property
    def restarts_after(self) -> int | None:
        """Where a model with absolute positions begins a new window; None for everybody else."""
        return None

    config: Any
    head: Any

    @property
    def heads(self) -> int:
        """Attention heads in all."""
        raise NotImplementedError

    def start(self, batch: int, window: int | None = None) -> Any:
        """The empty state, in the dtype and on the device of the parameters; `window` overrides the Config's."""
        raise NotImplementedError

    def advance(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The model itself: B × T tokens to B × T × D hidden vectors, and the state after them."""
        raise NotImplementedError

    def tail(self, tokens: Tensor, state: Any, rows: int) -> Tensor:
        """The hidden vectors of the last `rows` tokens only, B × rows × D, for who needs no other and no state."""
        hidden, _ = self(tokens, state)
        last: Tensor = hidden[:, -rows:]
        return last

    def longest_segment(self, window: int | None = None) -> int | None:
        """The longest segment that the model takes in one call under a window (the Config's by default), if any."""
        return None

    def finished(self) -> Self:
        """What is used after training: a new model; this one stays as it is."""
        return copy.deepcopy(self)

    def spec(self, segment: int = 1) -> Spec:
        """Costs and reach; `segment` is how many tokens are fed at once."""
        raise NotImplementedError

    def outline(self) -> tuple[Part, ...]:
        """The layers in the order in which they are passed."""
        raise NotImplementedError

    def look_back(self, tokens: Tensor, state: Any) -> tuple[list[Tensor], Any]:
        """Where every head looks, for inspection: B × T × S weights a head, and the state after the tokens.

        Column S - T + t is the row that position t of the tokens wrote; the ones before it are older.
        """
        raise NotImplementedError

    def units(self, state: Any) -> Mapping[str, Tensor]:
        """The recurrent units that a state holds, for inspection: B × U numbers in (-1, 1) by layer."""
        return {}

    def forward(self, tokens: Tensor, state: ModelState) -> tuple[Tensor, ModelState]:
        """B × T tokens (any T ≥ 1) and a state to B × T × D hidden vectors and the state after them."""
        require_usable(state)
        hidden, after = self.advance(tokens, state)
        after.without_gradients = not torch.is_grad_enabled()
        return hidden, after

    def objective(self, tokens: Tensor, state: Any, progress: float) -> tuple[Loss, Any]:
        """What training minimises on B × (T + lookahead) tokens; `progress` in [0, 1] makes schedules pure."""
        hidden, state = self(tokens[:, : -self.lookahead], state)
        return Loss({"nll": self.head.nll(hidden, tokens[:, 1:]).mean()}, {"nll": 1.0}), state

    def retired(self, progress: float) -> Iterable[nn.Parameter]:
        """Parameters that the objective has no more use for from here on: optimisers forget what they knew of them."""
        return ()

    @classmethod
    def blank(cls, config: Any, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Self:
        """A model whose parameters are allocated but not drawn: somebody fills them at once."""
        with torch.device(device), _Undrawn():
            return cls(config).to(dtype)


_DRAWING = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_, Tensor.normal_, Tensor.bernoulli_)


class _Undrawn(TorchFunctionMode):
    """Leaves numbers undrawn: they take time, and on the meta device torch imports its compiler to draw them."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if function in _DRAWING:
            return named.get("tensor", args[0] if args else None)
        return function(*args, **named)


@contextmanager
def undrawn() -> Iterator[None]:
    """Models that are made inside have shapes, but no numbers and no memory."""
    with torch.device("meta"), _Undrawn():
        yield


def watch(model: Model, kind: type[nn.Module], tokens: Tensor, state: Any) -> tuple[list[Tensor], Any]:
    """What every module of a kind says by its `weights` of what it is given while the tokens are read, in the order in
    which they are passed; and the state after the tokens.
    """
    found: list[Tensor] = []
    hooks = [
        module.register_forward_hook(lambda module, given, _: found.append(module.weights(*given)))
        for module in model.modules()
        if isinstance(module, kind)
    ]
    try:
        with torch.enable_grad():  # the memory must stay as it was for a second reading
            _, after = model.advance(tokens, state)
    finally:
        for hook in hooks:
            hook.remove()
    return [weights.detach() for weights in found], after.detach()


def require_usable(state: ModelState) -> None:
    """Refuse a state that a call with gradients off wrote into where gradients are on."""
    if torch.is_grad_enabled() and state.without_gradients:
        raise RuntimeError("this state comes from a call with gradients off: begin again with start()")


def count_parameters(model: nn.Module) -> int:
    """Every parameter once, tied or not."""
    return sum(parameter.numel() for parameter in model.parameters())

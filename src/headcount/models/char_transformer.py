"""The deep character Transformer (Al-Rfou, Choe, Constant, Guo, Jones 2018, "Character-Level Language Modeling with
Deeper Self-Attention").

n layers over a byte embedding E; layer l has a table of positions P_l of its own, added to what it is given:

    x₀ = E[bytes], perhaps times √D         x ← x_(l-1) + P_l[0 … T-1]
    post:   h = LN(x + Attention(x))        x_l = LN(h + FFN(h))
    pre:    h = x + Attention(LN(x))        x_l = h + FFN(LN(h))        no norm after the last layer
    FFN(z) = W₂·relu(W₁·z + b₁) + b₂        Attention causal, within the window, perhaps with biases
    p(next byte) = softmax(C·x_n + c)       a matrix of its own, or E

In training every layer predicts, with classifiers of its own, the next byte and, at half weight, the one after it;
layer l < n stops after l/2n of training. Positions are absolute: when the context is full, a new window begins at
position 0. Shapes: B batch, T time, D width, H heads, V vocabulary. Sizes, figures and what the paper leaves open:
recipes/paper and docs/models.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from headcount.layers.classifiers import mean_nats
from headcount.layers.heads import Softmax
from headcount.layers.memory import Memory
from headcount.layers.transformer import Layer, Norm
from headcount.models.contract import Loss, Model, ModelState, Part, Spec, count_parameters, require_usable

SECOND_WEIGHT = 0.5
"""Of the target after the next one."""


@dataclass(frozen=True, kw_only=True)
class CharTransformerConfig:
    """Sizes and settings of a deep character Transformer."""

    vocabulary: Annotated[int, Field(ge=2, le=1_000_000, description="symbols; 256 for bytes")] = 256
    width: Annotated[int, Field(ge=1, le=65_536, description="D: of the stream")] = 512
    layers: Annotated[int, Field(ge=1, le=1_024, description="attention and feed-forward, this many times")] = 12
    heads: Annotated[int, Field(ge=1, le=1_024, description="of every layer; they share the width")] = 2
    inner: Annotated[int, Field(ge=1, le=1_048_576, description="of the feed-forward layers")] = 2048
    context: Annotated[int, Field(ge=1, le=65_536, description="positions; a new window begins when it is full")] = 512
    norm: Annotated[Norm, Field(description="norms after every sum, or before every sub-layer")] = "pre"
    attention_biases: Annotated[bool, Field(description="attention's four matrices have biases")] = False
    tied: Annotated[bool, Field(description="the classifier that is used has the embedding's table")] = False
    embedding_scaled: Annotated[bool, Field(description="√width times the embedding")] = False
    init_std: Annotated[float | None, Field(gt=0, description="of tables, classifiers; 1/√width by default")] = None
    dropout: Annotated[float, Field(ge=0, lt=1, description="of attention's weights and of ReLU's outputs")] = 0.0
    every_position: Annotated[bool, Field(description="learn from all positions, not from the last alone")] = True
    intermediate_losses: Annotated[bool, Field(description="layer l predicts too, until l/2n of training")] = True
    second_target: Annotated[bool, Field(description="also predict the byte after the next, at half weight")] = True
    layer_reduction: Annotated[Literal["sum", "mean"], Field(description="of the losses of all active layers")] = "sum"
    recompute: Annotated[
        Literal["nothing", "layers"], Field(description="in training, keep less of these and run them twice")
    ] = "nothing"
    finished: Annotated[bool, Field(description="classifiers that only training needs are gone")] = False

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads}: width = {self.width} is not a multiple of it")


@dataclass(frozen=True)
class Prediction:
    """What one classifier predicts in training: a part of the objective."""

    name: str
    layer: int
    """Counted from 1."""
    ahead: int
    """1 for the next byte, 2 for the one after it."""

    @property
    def weight(self) -> float:
        """Within its layer."""
        return 1.0 if self.ahead == 1 else SECOND_WEIGHT


def predictions(config: CharTransformerConfig, progress: float = 0.0) -> list[Prediction]:
    """All that are made at `progress` in [0, 1] of training: layer l of n while it is below l/2n, the last always."""
    made = []
    for layer in range(1, config.layers + 1):
        last = layer == config.layers
        if not last and (config.finished or not config.intermediate_losses or progress >= layer / (2 * config.layers)):
            continue
        made.append(Prediction("nll" if last else f"layer {layer}", layer, 1))
        if config.second_target and not config.finished:
            made.append(Prediction("second" if last else f"layer {layer} second", layer, 2))
    return made


@dataclass(kw_only=True)
class CharTransformerState(ModelState):
    """Keys and values of the window so far, B × 2H × S × d a layer, keys first; none when a window begins."""

    layers: tuple[Memory, ...]

    @property
    def rows(self) -> int:
        """How many positions of the window are taken."""
        return self.layers[0].rows.shape[-2]


Through = Callable[[int, Tensor, Memory | None, int], tuple[Tensor, Memory | None]]
"""Runs a layer: its number, what it is given, its memory, and where in the call the window's part begins."""


class CharTransformer(Model):
    """The deep character Transformer: many layers, absolute positions in each, and losses on the way up."""

    Config: ClassVar[type] = CharTransformerConfig
    lookahead: ClassVar[int] = 2
    config: CharTransformerConfig

    def __init__(self, config: CharTransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = None if config.tied else nn.Embedding(config.vocabulary, config.width)
        sizes = config.width, config.heads, config.inner, config.context
        ways = config.norm, config.dropout, config.attention_biases
        self.layers = nn.ModuleList(Layer(*sizes, *ways) for _ in range(config.layers))
        self.head = Softmax(config.vocabulary, config.width)
        self.auxiliary = nn.ModuleDict(
            {p.name: Softmax(config.vocabulary, config.width) for p in predictions(config) if p.name != "nll"}
        )
        """By the name of their part of the objective: training alone needs them."""
        tables = [self._table, *(layer.positions for layer in self.layers)]
        for table in (*tables, self.head.weight, *(classifier.weight for classifier in self.auxiliary.values())):
            nn.init.normal_(cast(Tensor, table), std=config.init_std or config.width**-0.5)

    @property
    def _table(self) -> Tensor:
        """E, V × D."""
        return self.head.weight if self.embedding is None else self.embedding.weight

    @property
    def heads(self) -> int:
        """Those of all layers."""
        return self.config.layers * self.config.heads

    @property
    def restarts_after(self) -> int | None:
        """The context: there are no positions beyond it."""
        return self.config.context

    def start(self, batch: int, window: int | None = None) -> CharTransformerState:
        """An empty window; a smaller one restarts sooner, a larger one does not exist."""
        return self._begun(batch, self.config.context if window is None else max(1, min(window, self.config.context)))

    def _begun(self, batch: int, window: int) -> CharTransformerState:
        config, like = self.config, self.head.weight
        width = config.width // config.heads
        memories = (Memory.empty(batch, width, window, like, heads=2 * config.heads) for _ in range(config.layers))
        return CharTransformerState(layers=tuple(memories))

    def advance(self, tokens: Tensor, state: CharTransformerState) -> tuple[Tensor, CharTransformerState]:
        """Embedding and layers, window by window."""
        return self._read(tokens, state, lambda number, x, memory, begin: self.layers[number](x, memory))

    def _read(
        self, tokens: Tensor, state: CharTransformerState, through: Through
    ) -> tuple[Tensor, CharTransformerState]:
        """Every part of a window that the tokens fall into, layer by layer. A full window leaves nothing behind."""
        window, length, begin, parts = state.layers[0].window, tokens.shape[1], 0, []
        while begin < length:
            end = min(length, begin + window - state.rows)
            full = state.rows + end - begin == window
            memories: Sequence[Memory | None] = state.layers
            if full and not state.rows:
                memories = [None] * len(state.layers)
            x, after = self._embed(tokens[:, begin:end]), []
            for number, memory in enumerate(memories):
                x, memory = through(number, x, memory, begin)
                after.append(memory)
            remembered = cast(tuple[Memory, ...], tuple(after))
            state = self._begun(len(tokens), window) if full else CharTransformerState(layers=remembered)
            parts.append(x)
            begin = end
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1), state

    def _embed(self, tokens: Tensor) -> Tensor:
        """B × T bytes to B × T × D."""
        x = F.embedding(tokens, self._table)
        return x * math.sqrt(self.config.width) if self.config.embedding_scaled else x

    def tail(self, tokens: Tensor, state: CharTransformerState, rows: int) -> Tensor:
        """As everywhere; of one new window the last layer computes the rows that are asked for, and no others."""
        if state.rows or tokens.shape[1] > state.layers[0].window:
            return super().tail(tokens, state, rows)
        x = self._embed(tokens)
        *below, last = self.layers
        for layer in below:
            x, _ = layer(x, None)
        return cast(Tensor, last(x, None, min(rows, tokens.shape[1]))[0])

    def objective(
        self, tokens: Tensor, state: CharTransformerState, progress: float
    ) -> tuple[Loss, CharTransformerState]:
        """The losses of all layers that are active, each computed right after its layer. Retired classifiers have no
        part in it: their gradients stay None, so that no optimiser moves them.
        """
        require_usable(state)
        length, made = tokens.shape[1] - self.lookahead, predictions(self.config, progress)
        parts: list[tuple[list[Prediction], int, Tensor]] = []

        def through(number: int, x: Tensor, memory: Memory | None, begin: int) -> tuple[Tensor, Memory | None]:
            asked = [p for p in made if p.layer == number + 1]
            targets = [tokens[:, begin + p.ahead :][:, : x.shape[1]] for p in asked]
            x, memory, means = self._learn(number, x, memory, asked, targets)
            parts.append((asked, x.shape[1] if self.config.every_position else 1, means))
            return x, memory

        _, after = self._read(tokens[:, :length], state, through)
        after.without_gradients = not torch.is_grad_enabled()
        return self._loss(made, parts), after

    def retired(self, progress: float) -> Iterable[nn.Parameter]:
        """The classifiers of layers that predict no more."""
        active = {p.name for p in predictions(self.config, progress)}
        return [p for name, classifier in self.auxiliary.items() if name not in active for p in classifier.parameters()]

    def _learn(
        self, number: int, x: Tensor, memory: Memory | None, asked: list[Prediction], targets: list[Tensor]
    ) -> tuple[Tensor, Memory | None, Tensor]:
        """A layer and the mean nats of its predictions; where layers are recomputed, both run again."""
        classifiers = [self.head if p.name == "nll" else cast(Softmax, self.auxiliary[p.name]) for p in asked]
        learnt = slice(None) if self.config.every_position else slice(-1, None)

        def run(x: Tensor, memory: Memory | None) -> tuple[Tensor, Memory | None, Tensor]:
            x, memory = self.layers[number](x, memory)
            if not asked:
                return x, memory, x.new_zeros(0)
            chosen = [each[:, learnt] for each in targets]
            return x, memory, mean_nats(x[:, learnt], classifiers, chosen, [p.weight for p in asked])

        if self.config.recompute == "layers" and torch.is_grad_enabled():
            return cast(tuple[Tensor, Memory | None, Tensor], checkpoint(run, x, memory, use_reentrant=False))
        return run(x, memory)

    def _loss(self, made: list[Prediction], parts: list[tuple[list[Prediction], int, Tensor]]) -> Loss:
        """Means over all positions of the call, by name."""
        found: dict[str, Tensor] = {}
        positions = sum(count for asked, count, _ in parts if asked and asked[0].name == "nll")
        for asked, count, means in parts:
            for p, mean in zip(asked, means.unbind(), strict=True):
                found[p.name] = found.get(p.name, 0) + mean * (count / positions)
        layers = len({p.layer for p in made}) if self.config.layer_reduction == "mean" else 1
        return Loss({p.name: found[p.name] for p in made}, {p.name: p.weight / layers for p in made})

    def look_back(self, tokens: Tensor, state: CharTransformerState) -> tuple[list[Tensor], CharTransformerState]:
        """The weights of every head, layer by layer; what lies before a new window has none."""
        batch, length = tokens.shape
        old, heads = state.rows, self.config.heads
        found = [self._table.new_zeros(batch, heads, length, old + length) for _ in self.layers]

        def through(number: int, x: Tensor, memory: Memory | None, begin: int) -> tuple[Tensor, Memory | None]:
            layer = cast(Layer, self.layers[number])
            weights = layer.attention.weights(layer.read(layer.placed(x, memory)), memory)
            end = begin + x.shape[1]
            found[number][:, :, begin:end, old + end - weights.shape[-1] : old + end] = weights.detach()
            return cast(tuple[Tensor, Memory | None], layer(x, memory))

        with torch.enable_grad():  # the memory must stay as it was for a second reading
            _, after = self._read(tokens, state, through)
        return [weights for layer in found for weights in layer.unbind(1)], after.detach()

    def outline(self) -> tuple[Part, ...]:
        """Embedding, the layers, the classifier that is used."""
        config, parts = self.config, [Part("embedding", (self.config.vocabulary, self.config.width))]
        for i in range(config.layers):
            kept = 2 * (config.context - 1) * config.width
            parts.append(Part("positions", (config.context, config.width), i))
            parts.append(
                Part(f"attention, {config.heads} heads", (config.width, config.width), i, config.context, kept)
            )
            parts.append(Part("feed-forward", (config.width, config.inner, config.width), i))
        name = "classifier (tied)" if config.tied else "classifier"
        return (*parts, Part(name, (config.width, config.vocabulary)))

    def finished(self) -> CharTransformer:
        """A new model without the classifiers that only training needs; its Config says so."""
        like = self.head.weight
        config = dataclasses.replace(self.config, finished=True)
        model = CharTransformer.blank(config, dtype=like.dtype, device=like.device)
        kept = {name: t for name, t in self.state_dict().items() if not name.startswith("auxiliary.")}
        model.load_state_dict(kept)
        return model.train(self.training)

    def spec(self, segment: int = 1) -> Spec:
        """Counts; attention as in a full window, every query against every row, whatever the segment."""
        config = self.config
        of_layer = 2 * (4 * config.width**2 + 2 * config.width * config.inner) + 4 * config.width * config.context
        rows = config.context - 1  # a window that is full leaves nothing behind
        return Spec(
            parameters=count_parameters(self),
            parameters_in_use=count_parameters(self) - count_parameters(self.auxiliary),
            heads=self.heads,
            receptive_field=config.context,
            state_bytes=self.head.weight.element_size() * config.layers * 2 * config.width * rows,
            flops=config.layers * of_layer + 2 * config.width * config.vocabulary,
            recurrent_flops=0,
        )

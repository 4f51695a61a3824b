"""Transformer-XL (Dai et al. 2019, "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context").

A stack of layers over h⁰ = √D·E[x]. Layer n sees its own input of earlier segments, without gradient, as memory:

    c = [memory_n; h]                  s_ij = [(q_i + u)·k_j + (q_i + v)·r_δ]/√d      δ = how far j lies back
    x = LN(h + W_o·softmax(s)·V)       q = W_q·h, k = W_k·c, V = W_v·c, r_δ = W_r·S(δ), S a sinusoid
    h' = LN(x + W₂·relu(W₁·x + b₁) + b₂)                p(next) = softmax(h_last·Eᵀ + b)

u and v are learnt, shared by all layers or not. In training the memory holds layer inputs, so that W_k and W_v learn
through it. With gradients off it holds keys and values, and r once for all streams: a byte costs one byte's work.
`positions` names the rivals of the paper's ablation. Sizes, figures and disagreements: recipes/paper, docs/models.md.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from headcount.layers.adaptive import require_bands, tied_softmax
from headcount.layers.dropout import dropout
from headcount.layers.memory import Memory, seen
from headcount.layers.norm import LayerNorm
from headcount.layers.positions import frequencies, sinusoid
from headcount.layers.recompute import run_twice
from headcount.layers.relative_heads import Attention, Projected, Seen, as_bias
from headcount.layers.state import NOT_CARRIED
from headcount.models import transformer_xl_single
from headcount.models.contract import Loss, Model, ModelState, Part, Spec, count_parameters, require_usable, watch

Rule = Literal["exact", "memory"]
Positions = Literal["relative", "shaw", "sinusoid", "learned"]


@dataclass(frozen=True, kw_only=True)
class TransformerXLConfig:
    """Sizes and settings of a Transformer-XL."""

    vocabulary: Annotated[int, Field(ge=2, le=10_000_000, description="symbols; 256 for bytes")] = 256
    width: Annotated[int, Field(ge=2, le=65_536, multiple_of=2, description="D: of the stream")] = 256
    layers: Annotated[int, Field(ge=1, le=1_024, description="attention and feed-forward, this many times")] = 4
    heads: Annotated[int, Field(ge=1, le=1_024, description="of every layer")] = 4
    head_width: Annotated[int | None, Field(ge=1, le=65_536, description="of a head; width / heads by default")] = None
    inner: Annotated[int, Field(ge=1, le=1_048_576, description="width of the feed-forward layer")] = 1024
    window: Annotated[int, Field(ge=0, le=16_777_216, description="the most keys a query sees")] = 256
    window_rule: Annotated[Rule, Field(description="exact; memory: so many old rows, as published")] = "exact"
    memory_start: Annotated[
        Literal["empty", "zeros"], Field(description="zeros: rows of zeros are there from the start, and seen")
    ] = "empty"
    norm: Annotated[Literal["post", "pre"], Field(description="after the sum, as published, or before each part")] = (
        "post"
    )
    final_norm: Annotated[bool, Field(description="one more norm before the classifier")] = False
    shared_biases: Annotated[bool, Field(description="one u and v for all layers")] = True
    positions: Annotated[Positions, Field(description="relative; the others are the paper's ablation")] = "relative"
    clamp: Annotated[int | None, Field(ge=1, description="distances beyond it count as it")] = None
    loss: Annotated[Literal["full", "half"], Field(description="learn from all positions or the last half")] = "full"
    cutoffs: Annotated[tuple[int, ...], Field(description="where the bands of an adaptive softmax begin")] = ()
    division: Annotated[int, Field(ge=1, description="band b has vectors this to the b times as narrow")] = 1
    embedding_width: Annotated[int | None, Field(ge=1, le=65_536, description="of band 0; width by default")] = None
    tied_projections: Annotated[tuple[bool, ...], Field(description="by band: in and out are one; [] all are")] = ()
    dropout: Annotated[float, Field(ge=0, lt=1, description="at six places")] = 0.0
    attention_dropout: Annotated[float, Field(ge=0, lt=1, description="on attention weights")] = 0.0
    eps: Annotated[float, Field(gt=0, lt=1, description="of every layer norm")] = 1e-5
    recompute: Annotated[
        Literal["nothing", "layers"], Field(description="in training, keep less of these and run them twice")
    ] = "nothing"
    init_std: Annotated[float, Field(gt=0, description="deviation of drawn weights")] = 0.02

    def __post_init__(self) -> None:
        if self.head_width is None and self.width % self.heads:
            raise ValueError(f"width = {self.width} is not a multiple of heads = {self.heads}: give head_width")
        require_bands(self.cutoffs, self.vocabulary)
        if self.tied_projections and len(self.tied_projections) != len(self.cutoffs) + 1:
            raise ValueError(f"tied_projections must name all {len(self.cutoffs) + 1} bands, or none")
        if self.cutoffs and (self.embedding_width or self.width) // self.division ** len(self.cutoffs) < 1:
            raise ValueError(f"division = {self.division}: nothing is left of a vector in the last of the bands")
        if self.window < 1 and self.window_rule == "exact":
            raise ValueError("window = 0: a query sees at least itself (window_rule = 'memory' may have no old rows)")
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Settings that would change nothing beside the others."""
        if self.absolute and (self.window_rule, self.memory_start, self.clamp) != ("exact", "empty", None):
            raise ValueError(
                f"positions = {self.positions!r} are absolute and have no memory and no distances: leave out "
                "window_rule, memory_start and clamp"
            )
        if self.positions != "relative" and not self.shared_biases:
            raise ValueError(f"shared_biases = false: u and v are of relative positions, not of {self.positions!r}")
        if self.tied_projections and self.division == 1 and self.embedding_width in (None, self.width):
            raise ValueError("tied_projections: division = 1 and vectors as wide as the stream need no projections")

    @property
    def d(self) -> int:
        """A head's width."""
        return self.head_width or self.width // self.heads

    @property
    def absolute(self) -> bool:
        """Whether positions count from the beginning of a window, which then begins anew when it is full."""
        return self.positions in ("sinusoid", "learned")


@dataclass(kw_only=True)
class TransformerXLState(ModelState):
    """Every layer's memory: its inputs (B × S × D), or with gradients off keys and values (B × 2H × S × d)."""

    layers: tuple[Memory, ...]
    exact: bool
    clamp: int
    """0 is none."""
    projected: Projected = field(default_factory=Projected, metadata=NOT_CARRIED)
    single: tuple[transformer_xl_single.Layer, ...] = field(default=(), metadata=NOT_CARRIED)
    """The layers themselves, in the form in which they read single bytes, once they did."""

    @property
    def rule(self) -> Rule:
        """Of the window."""
        return "exact" if self.exact else "memory"


class Layer(nn.Module):
    """Attention and feed-forward, each with its norm after the sum or before itself."""

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__()
        self.dropout, self.pre = config.dropout, config.norm == "pre"
        self.attention, self.attention_norm = Attention(config), LayerNorm(config.width, config.eps)
        self.up, self.down = nn.Linear(config.width, config.inner), nn.Linear(config.inner, config.width)
        self.feed_norm = LayerNorm(config.width, config.eps)

    def rows(self, h: Tensor) -> Tensor:
        """What attention reads of a layer's input."""
        return self.attention_norm(h) if self.pre else h

    def forward(self, h: Tensor, seen_rows: Seen) -> Tensor:
        """B × T × D to B × T × D."""
        looked_up = self._drop(self.attention(self.rows(h), seen_rows))
        h = h + looked_up if self.pre else self.attention_norm(h + looked_up)
        wide = self._drop(F.relu(self.up(self.feed_norm(h) if self.pre else h)))
        fed = self._drop(self.down(wide))
        y: Tensor = h + fed if self.pre else self.feed_norm(h + fed)
        return y

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


Fixed = tuple[Tensor | None, Tensor | None, tuple[Tensor, Tensor] | None]
"""What a layer sees besides keys and values: see `Seen`."""


class TransformerXL(Model):
    """Transformer-XL: attention by distance over a memory of earlier segments."""

    Config: ClassVar[type] = TransformerXLConfig
    config: TransformerXLConfig
    frequencies: Tensor
    """Of the sinusoid, D/2 numbers; as loaded, where weights were published with their own."""

    def __init__(self, config: TransformerXLConfig) -> None:
        super().__init__()
        self.config = config
        self.head = tied_softmax(
            config.vocabulary,
            config.width,
            config.cutoffs,
            division=config.division,
            embedding_width=config.embedding_width,
            tied_projections=config.tied_projections or None,
        )
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.final_norm = LayerNorm(config.width, config.eps) if config.final_norm else None
        if config.positions == "relative" and config.shared_biases:
            self.content_bias = nn.Parameter(torch.empty(config.heads, config.d))
            self.distance_bias = nn.Parameter(torch.empty(config.heads, config.d))
        if config.positions == "learned":
            self.places = nn.Parameter(torch.empty(config.layers, config.window, config.width))
        if config.positions in ("relative", "sinusoid"):
            self.register_buffer("frequencies", frequencies(config.width))
        initialise(self, config)

    @property
    def limits(self) -> tuple[str, ...]:
        """Absolute positions have no distances to clamp, and their window has one rule."""
        return ("window",) if self.config.absolute else ("window", "clamp", "rule")

    @property
    def heads(self) -> int:
        """In all layers."""
        return self.config.layers * self.config.heads

    def _apply(self, fn: Any, recurse: bool = True) -> TransformerXL:
        """As everywhere, but frequencies stay in float64: rounded once, no wider model would get them back."""
        before = getattr(self, "frequencies", None)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if before is not None and self.frequencies.dtype != before.dtype:
            self.frequencies = before.to(self.frequencies.device)
        return self

    @property
    def _like(self) -> Tensor:
        """A parameter whose dtype and device are the model's."""
        return next(self.parameters())

    @property
    def restarts_after(self) -> int | None:
        """The window, where positions count from its beginning."""
        return self.config.window if self.config.absolute else None

    def start(
        self, batch: int, window: int | None = None, clamp: int | None = None, rule: Rule | None = None
    ) -> TransformerXLState:
        """Empty memories, or memories of zeros."""
        config, like = self.config, self._like
        reach = config.window if window is None else window
        if config.absolute:
            reach = min(reach, config.window)
        exact = (rule or config.window_rule) == "exact"
        reach = max(reach, 1) if exact else reach  # a query sees itself
        zeros = reach if config.memory_start == "zeros" else 0
        return TransformerXLState(
            layers=tuple(Memory.of(like.new_zeros(batch, zeros, config.width), reach) for _ in self.layers),
            exact=exact,
            clamp=clamp or config.clamp or 0,
        )

    def advance(self, tokens: Tensor, state: TransformerXLState) -> tuple[Tensor, TransformerXLState]:
        """Embedding, layers; where positions are absolute, a new window whenever one is full."""
        if not self.config.absolute:
            return self._segment(tokens, state)
        pieces = []
        while tokens.shape[1]:
            window, used = state.layers[0].window, state.layers[0].length
            if used == window:
                state, used = self.start(len(tokens), window), 0
            hidden, state = self._segment(tokens[:, : window - used], state)
            pieces.append(hidden)
            tokens = tokens[:, window - used :]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1), state

    def tail(self, tokens: Tensor, state: TransformerXLState, rows: int) -> Tensor:
        """As everywhere; in one window the last layer computes the rows that are asked for, and no others."""
        if self.config.absolute and state.layers[0].length + tokens.shape[1] > state.layers[0].window:
            return super().tail(tokens, state, rows)
        require_usable(state)
        return self._segment(tokens, state, min(rows, tokens.shape[1]))[0]

    def _segment(self, tokens: Tensor, state: TransformerXLState, last: int = 0) -> tuple[Tensor, TransformerXLState]:
        """A segment that stays in one window: all of it, or its last rows."""
        config, length, first = self.config, tokens.shape[1], state.layers[0]
        places = slice(first.length, first.length + length)
        h = self.head.embed(tokens) * math.sqrt(config.width)
        if config.positions == "sinusoid":
            h = h + self._waves(torch.arange(places.start, places.stop, device=h.device)).to(h.dtype)
        h = self._drop(h)
        rows, most = first.sees(length, state.rule), first.sees_at_most(length, state.rule)
        kept, ready = (state.projected, state.single) if state.without_gradients else (Projected(), ())
        tables = [] if config.absolute else kept.reach(rows, most, lambda n: self._project(n, state.clamp))
        if transformer_xl_single.applies(self, tokens, state):
            ready = ready or transformer_xl_single.prepare(self, self._shared)
            h, after = transformer_xl_single.through(ready, h, state, tables)
        else:
            hide, after = as_bias(seen(length, rows, first.window if state.exact else None, h.device), h), []
            for number, (layer, memory) in enumerate(zip(self.layers, state.layers, strict=True)):
                if config.positions == "learned":
                    h = h + self.places[number, places]
                queries = (number == config.layers - 1 and last) or length
                fixed = hide if hide is None else hide[-queries:], tables[number] if tables else None, self._shared
                h, memory = self._through(cast(Layer, layer), h, queries, memory, state, fixed)
                after.append(memory)
        if self.final_norm is not None:
            h = self.final_norm(h)
        return self._drop(h), dataclasses.replace(state, layers=tuple(after), projected=kept, single=ready)

    def _through(
        self, layer: Layer, h: Tensor, queries: int, memory: Memory, state: TransformerXLState, fixed: Fixed
    ) -> tuple[Tensor, Memory]:
        """A layer's last rows, and its memory; where layers are recomputed, it keeps its inputs and runs twice."""
        attention, asked = layer.attention, h if queries == h.shape[1] else h[:, -queries:]
        if not torch.is_grad_enabled():
            if not state.without_gradients:  # rows of zeros too: a norm before attention makes something of them
                memory = Memory.of(attention.keys_and_values(layer.rows(memory.rows)), memory.window)
            both, memory = memory.append(attention.keys_and_values(layer.rows(h)), state.rule)
            return layer(asked, Seen(both, *fixed)), memory
        rows, memory = memory.append(h, state.rule)

        def run(h: Tensor, rows: Tensor) -> Tensor:
            return cast(Tensor, layer(h, Seen(attention.keys_and_values(layer.rows(rows)), *fixed)))

        if self.config.recompute == "layers":
            return run_twice(run, asked, rows), memory.detach()
        return run(asked, rows), memory.detach()

    def _project(self, rows: int, clamp: int) -> list[Tensor]:
        """r of every layer for the distances rows - 1 … 0, H × S × D'."""
        distances = torch.arange(rows - 1, -1, -1, device=self._like.device)
        distances = distances.clamp(max=clamp) if clamp else distances
        waves = self._drop(self._waves(distances)) if self.config.positions == "relative" else None
        return [cast(Layer, layer).attention.project(distances, waves) for layer in self.layers]

    def _waves(self, distances: Tensor) -> Tensor:
        """In the model's dtype, but float32 at least: a narrower one knows only a few hundred distances."""
        return sinusoid(distances, self.frequencies.to(torch.promote_types(self._like.dtype, torch.float32)))

    @property
    def _shared(self) -> tuple[Tensor, Tensor] | None:
        """u and v, if all layers have the same."""
        own = self.config.positions == "relative" and self.config.shared_biases
        return (self.content_bias, self.distance_bias) if own else None

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.config.dropout, self.training)

    def objective(self, tokens: Tensor, state: ModelState, progress: float) -> tuple[Loss, ModelState]:
        """The mean of all positions, or of the last half of a segment."""
        hidden, state = self(tokens[:, :-1], state)
        first = hidden.shape[1] // 2 if self.config.loss == "half" else 0
        nats = self.head.nll(hidden[:, first:], tokens[:, 1 + first :])
        return Loss({"nll": nats.mean()}, {"nll": 1.0}), state

    def look_back(self, tokens: Tensor, state: TransformerXLState) -> tuple[list[Tensor], TransformerXLState]:
        """The weights of every head, layer by layer; what lies before a new window has none."""
        config, (batch, length), old, end = self.config, tokens.shape, state.layers[0].length, 0
        weights, after = watch(self, Attention, tokens, state)
        if len(weights) > config.layers:  # windows one after the other: each in its place, zeros around it
            parts, whole = weights, self._like.new_zeros(config.layers, batch, config.heads, length, old + length)
            for number, part in enumerate(parts):
                layer, (rows, keys) = number % config.layers, part.shape[2:]
                end += rows if layer == 0 else 0
                whole[layer, :, :, end - rows : end, old + end - keys : old + end] = part
            weights = list(whole)
        return [head for layer in weights for head in layer.unbind(1)], after

    def outline(self) -> tuple[Part, ...]:
        """Embedding, the layers, the classifier."""
        config, parts = self.config, [Part("embedding", (self.config.vocabulary, self.config.width))]
        for i in range(config.layers):
            inner = config.heads * config.d
            name = f"attention, {config.heads} heads"
            parts.append(Part(name, (config.width, inner), i, config.window, 2 * config.window * inner))
            parts.append(Part("feed-forward", (config.width, config.inner, config.width), i))
        return (*parts, Part("classifier (tied)", (config.width, config.vocabulary)))

    def _reach(self, segment: int) -> int:
        """The bytes that the last prediction of a segment depends on.

        By the rule "memory" its row sees the whole segment and W rows before it, of which the oldest saw the whole of
        *its* segment and W before that, and so on down the layers.
        """
        config = self.config
        if config.absolute:
            return config.window
        if config.window_rule == "exact":
            return config.layers * (config.window - 1) + 1
        return segment + (config.layers - 1) * -(-config.window // segment) * segment + config.window

    def spec(self, segment: int = 1) -> Spec:
        """Counts; the state is the one with gradients off."""
        config, inner = self.config, self.config.heads * self.config.d
        old = 0 if config.absolute else config.window - (config.window_rule == "exact")
        rows = config.window if config.absolute else old + segment
        kept = config.window - config.absolute  # a window that is full begins anew
        by_place = {"relative": inner, "shaw": inner + config.heads}.get(config.positions, 0)
        attention = 8 * config.width * inner + 2 * rows * (2 * inner + by_place)
        return Spec(
            parameters=count_parameters(self),
            parameters_in_use=count_parameters(self),
            heads=self.heads,
            receptive_field=self._reach(segment),
            state_bytes=config.layers * 2 * inner * kept * self._like.element_size(),
            flops=config.layers * (attention + 4 * config.width * config.inner) + self.head.flops,
            recurrent_flops=0,
        )


def initialise(model: TransformerXL, config: TransformerXLConfig) -> None:
    """Matrices, tables, u and v N(0, σ²); biases 0; gains of norms N(1, σ²); projections of bands N(0, 0.01²)."""
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):
            nn.init.normal_(parameter, 1.0, config.init_std)
        elif re.search(r"(norm|up|down|head)\.bias$|head\.biases|cluster_bias|table_bias", name):
            nn.init.zeros_(parameter)
        elif "projections" in name:
            nn.init.normal_(parameter, std=0.01)
        else:
            nn.init.normal_(parameter, std=config.init_std)

"""The Single Headed Attention RNN (Merity 2019, "Single Headed Attention RNN: Stop Thinking With Your Head").

A stack of blocks over a byte embedding E, tied to the classifier. A block turns x into y (LN: layer norm, eps 1e-12):

    r = LSTM(LN_start(x))                                  no skip connection
    h = LN_mid(r) + Attention(LN_mid(r), LN_mem(r))        only in blocks that look back; h = r in the others
    y = LN_ff(h) + Boom(LN_xff(h))                         every "residual" path carries a normalised copy

    p(next byte) = softmax(y_last · Eᵀ + b)                no final norm

There are no positions: order comes from the LSTMs alone. D is the width, M the memory, σ the logistic sigmoid. An
option of ours adds hashed n-grams to the embedding. The published sizes, figures and every place where the paper and
its code disagree: recipes/paper and docs/models.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from headcount.layers import single
from headcount.layers.adaptive import require_bands, tied_softmax
from headcount.layers.attend import attend
from headcount.layers.boom import boom
from headcount.layers.dropout import dropout
from headcount.layers.memory import Memory, WindowRule, seen
from headcount.layers.ngrams import Ngrams, before_the_first, remember
from headcount.layers.norm import LayerNorm
from headcount.layers.recurrent import LSTM, LSTMState
from headcount.layers.state import NOT_CARRIED, State
from headcount.models import sha_rnn_single
from headcount.models.contract import Model, ModelState, Part, Spec, count_parameters, watch


@dataclass(frozen=True, kw_only=True)
class ShaRnnConfig:
    """Sizes and settings of a SHA-RNN."""

    vocabulary: Annotated[int, Field(ge=2, le=1_000_000, description="symbols; 256 for bytes")] = 256
    width: Annotated[int, Field(ge=1, le=65_536, description="D: of the stream, the LSTMs and the head")] = 256
    blocks: Annotated[int, Field(ge=1, le=1_024, description="LSTM, perhaps attention, and Boom, this many times")] = 2
    attention: Annotated[tuple[int, ...], Field(description="which blocks look back, counted from 0; [] is none")] = (
        0,
    )
    window: Annotated[int, Field(ge=1, le=16_777_216, description="the most rows of memory a query sees")] = 1024
    window_rule: Annotated[Literal["exact", "segment"], Field(description="exact, or cut by segment as published")] = (
        "exact"
    )
    cutoffs: Annotated[
        tuple[int, ...], Field(description="where the bands of an adaptive softmax begin; [] is none")
    ] = ()
    boom: Annotated[int, Field(ge=1, le=64, description="the Boom layer is this many times the width")] = 4
    ngrams: Annotated[
        tuple[int, ...], Field(description="also embed the last so many symbols, hashed; [] is none")
    ] = ()
    ngram_rows: Annotated[int, Field(ge=1, le=16_777_216, description="of the table of each of these orders")] = 8192
    dropout: Annotated[float, Field(ge=0, lt=1, description="at all nine places of the paper's code")] = 0.0
    eps: Annotated[float, Field(gt=0, lt=1, description="of every layer norm")] = 1e-12
    init: Annotated[Literal["desk", "paper"], Field(description="how weights are drawn")] = "desk"
    recompute: Annotated[
        Literal["nothing", "layers", "blocks"], Field(description="in training, keep less of these and run them twice")
    ] = "nothing"
    collapsed: Annotated[bool, Field(description="the value vector is finished, not over-parameterised")] = False

    def __post_init__(self) -> None:
        if any(not 0 <= block < self.blocks for block in self.attention):
            raise ValueError(f"attention = {list(self.attention)} names a block that is not in 0 … {self.blocks - 1}")
        if len(set(self.attention)) < len(self.attention):
            raise ValueError(f"attention = {list(self.attention)} names a block twice")
        require_bands(self.cutoffs, self.vocabulary)
        if any(not 2 <= order <= 64 for order in self.ngrams):
            raise ValueError(f"ngrams = {list(self.ngrams)} names an order that is not in 2 … 64")
        if self.ngrams and self.width % len(self.ngrams):
            raise ValueError(f"ngrams = {list(self.ngrams)}: width = {self.width} is not a multiple of their number")

    @property
    def reach(self) -> int:
        """How many symbols before the current one n-grams look at."""
        return max(self.ngrams, default=1) - 1


@dataclass
class BlockState(State):
    """One block's LSTM state and its memory; a block that does not look back keeps a memory of no width."""

    lstm: LSTMState
    memory: Memory


@dataclass(kw_only=True)
class ShaRnnState(ModelState):
    """The state of every block, and what goes with it."""

    blocks: tuple[BlockState, ...]
    recent: Tensor
    """B × reach: the last symbols, for n-grams."""
    single: tuple[sha_rnn_single.Block, ...] = field(default=(), metadata=NOT_CARRIED)
    """The blocks themselves, in the form in which they read single bytes, once they did."""


class OverParameterised(nn.Module):
    """A vector that is learnt as a function of another: v = σ(f)⊙tanh(c), [c; f] = W·σ(raw) + b."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(width))
        self.mix = nn.Linear(width, 2 * width)

    def forward(self) -> Tensor:
        """The vector as it is now."""
        candidate, gate = self.mix(self.raw.sigmoid()).chunk(2)
        vector: Tensor = gate.sigmoid() * candidate.tanh()
        return vector


class FinishedVector(nn.Module):
    """The same vector once training is over: plain numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(width))

    def forward(self) -> Tensor:
        """The vector."""
        return self.vector


class Attention(nn.Module):
    """The single head. Only the query has a matrix; keys and values are the same stored rows M under two gates:

        q = LN_q(W·x + b)⊙σ(g_q)     k = M⊙σ(g_k)     v = M⊙v̂     A = softmax(q·kᵀ/√D)     out = A·v

    The gates of q and k and the scale multiply LN_q's gain and bias, and v̂ factors out of the mixture, so that M is
    read as it is stored: out = v̂⊙(softmax(q'·Mᵀ)·M), with q' the query under the folded norm.
    """

    def __init__(self, config: ShaRnnConfig) -> None:
        super().__init__()
        self.rule: WindowRule = config.window_rule
        self.dropout, self.recompute = config.dropout, config.recompute == "layers"
        self.query = nn.Linear(config.width, config.width)
        self.query_norm = LayerNorm(config.width, config.eps)
        self.query_gate = nn.Parameter(torch.zeros(config.width))
        self.key_gate = nn.Parameter(torch.zeros(config.width))
        self.value = (FinishedVector if config.collapsed else OverParameterised)(config.width)

    def open(self) -> None:
        """Begin with σ(g_q)·σ(g_k) = 0.9 instead of 1/4 and |v̂| about 0.74 instead of 0.14: a head that looks nowhere
        in particular and says little takes minutes to become useful.
        """
        with torch.no_grad():
            self.query_gate.fill_(3.0)
            self.key_gate.fill_(3.0)
            if isinstance(self.value, OverParameterised):
                candidate, gate = self.value.mix.bias.chunk(2)
                candidate.bernoulli_().mul_(3.0).sub_(1.5)
                gate.fill_(1.5)

    def forward(self, x: Tensor, new: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Queries x and new rows (T × B × D each) over the memory to T × B × D, and the memory after them."""
        new = new.transpose(0, 1)
        past_learns = memory.buffer.requires_grad
        rows, memory = memory.append(new, self.rule)
        mask = seen(len(x), rows.shape[1], memory.window if self.rule == "exact" else None, x.device)
        learnt = rows if past_learns else new
        query = dropout(self._query(x), self.dropout, self.training)
        mixture = attend(query, rows, learnt, mask, self.dropout if self.training else 0.0, not self.recompute)
        return self.value() * mixture.transpose(0, 1), memory

    def weights(self, x: Tensor, new: Tensor, memory: Memory) -> Tensor:
        """A itself, B × T × S, for inspection; only where gradients are on, where the memory is not written into."""
        rows, _ = memory.append(new.transpose(0, 1), self.rule)
        mask = seen(len(x), rows.shape[1], memory.window if self.rule == "exact" else None, x.device)
        scores = self._query(x) @ rows.transpose(1, 2)
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), dim=-1)

    def _query(self, x: Tensor) -> Tensor:
        """q', B × T × D."""
        norm = self.query_norm
        fold = self.query_gate.sigmoid() * self.key_gate.sigmoid() / math.sqrt(x.shape[-1])
        return F.layer_norm(
            self.query(x.transpose(0, 1)), norm.normalized_shape, norm.weight * fold, norm.bias * fold, norm.eps
        )


class Boom(nn.Module):
    """A feed-forward layer without its second matrix: u = g(W·z + b), N·D wide; the N chunks of u are summed.

    g is the sigmoid approximation of GELU, x·σ(1.702·x).
    """

    def __init__(self, config: ShaRnnConfig) -> None:
        super().__init__()
        self.dropout, self.recompute = config.dropout, config.recompute == "layers"
        self.up = nn.Linear(config.width, config.boom * config.width)

    def forward(self, z: Tensor) -> Tensor:
        """T × B × D to T × B × D."""
        return boom(z, self.up.weight, self.up.bias, self.dropout if self.training else 0.0, self.recompute)


class Block(nn.Module):
    """LSTM, attention if it looks back, Boom."""

    def __init__(self, config: ShaRnnConfig, looks_back: bool) -> None:
        super().__init__()

        def norm() -> LayerNorm:
            return LayerNorm(config.width, config.eps)

        self.dropout, self.recompute = config.dropout, config.recompute == "layers"
        self.start_norm, self.lstm = norm(), LSTM(config.width)
        self.attention = Attention(config) if looks_back else None
        if looks_back:
            self.mid_norm, self.memory_norm = norm(), norm()
        self.skip_norm, self.boom_norm, self.boom = norm(), norm(), Boom(config)

    def forward(self, x: Tensor, state: BlockState) -> tuple[Tensor, BlockState]:
        """T × B × D and a state to T × B × D and the state after it."""
        h, lstm = self.lstm(self.start_norm(x), state.lstm, self.recompute)
        h, memory = self._drop(h), state.memory
        if self.attention is not None:
            query = self.mid_norm(h)
            looked_up, memory = self.attention(query, self.memory_norm(h), memory)
            h = query + self._drop(looked_up)
        y = self.skip_norm(h) + self._drop(self.boom(self.boom_norm(h)))
        return y, BlockState(lstm, memory)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class ShaRnn(Model):
    """The SHA-RNN: LSTMs, a Boom layer, and a single attention head over a long memory."""

    Config: ClassVar[type] = ShaRnnConfig
    config: ShaRnnConfig

    def __init__(self, config: ShaRnnConfig) -> None:
        super().__init__()
        self.config = config
        self.head = tied_softmax(config.vocabulary, config.width, config.cutoffs)
        self.ngrams = Ngrams(config.ngrams, config.ngram_rows, config.width) if config.ngrams else None
        self.blocks = nn.ModuleList(Block(config, i in config.attention) for i in range(config.blocks))
        initialise(self, config)

    @property
    def heads(self) -> int:
        """One in every block that looks back."""
        return len(self.config.attention)

    def start(self, batch: int, window: int | None = None) -> ShaRnnState:
        """Zeros and empty memories."""
        config, like = self.config, next(self.parameters())
        reach = config.window if window is None else window
        return ShaRnnState(
            blocks=tuple(
                BlockState(
                    LSTMState.zeros(batch, config.width, like),
                    Memory.empty(batch, config.width if i in config.attention else 0, reach, like),
                )
                for i in range(config.blocks)
            ),
            recent=before_the_first(batch, config.reach, like.device),
        )

    def longest_segment(self, window: int | None = None) -> int | None:
        """The window under the rule "segment", which refuses longer ones."""
        limited = self.config.window_rule == "segment" and self.config.attention
        return (self.config.window if window is None else window) if limited else None

    def advance(self, tokens: Tensor, state: ShaRnnState) -> tuple[Tensor, ShaRnnState]:
        """Embedding, blocks; the head does the rest. Time comes first inside."""
        if single.applies(tokens, next(self.parameters())) and not (self.training and self.config.dropout):
            return self._one(tokens, state)
        x = self._drop(self._embed(tokens, state).transpose(0, 1))
        after = []
        for block, block_state in zip(self.blocks, state.blocks, strict=True):
            x, block_state = self._through(block, x, block_state)
            after.append(block_state)
        recent = remember(state.recent, tokens)
        return self._drop(x).transpose(0, 1), ShaRnnState(blocks=tuple(after), recent=recent)

    def _embed(self, tokens: Tensor, state: ShaRnnState) -> Tensor:
        """B × T tokens to B × T × D vectors."""
        x: Tensor = self.head.embed(tokens)
        return x if self.ngrams is None else x + self.ngrams(tokens, state.recent)

    def _one(self, token: Tensor, state: ShaRnnState) -> tuple[Tensor, ShaRnnState]:
        """One byte of one stream."""
        blocks = state.single or sha_rnn_single.prepare(self)
        x, after = single.array(self._embed(token, state))[0, 0], []
        for block, block_state in zip(blocks, state.blocks, strict=True):
            x, block_state = block(x, block_state)
            after.append(block_state)
        recent = remember(state.recent, token)
        return torch.from_numpy(x)[None, None], ShaRnnState(blocks=tuple(after), recent=recent, single=blocks)

    def _through(self, block: nn.Module, x: Tensor, state: BlockState) -> tuple[Tensor, BlockState]:
        """A block; where blocks are recomputed it keeps only what it is given, and runs again in the backward pass."""
        if self.config.recompute != "blocks" or not torch.is_grad_enabled():
            return cast(tuple[Tensor, BlockState], block(x, state))
        return cast(tuple[Tensor, BlockState], checkpoint(block, x, state, use_reentrant=False))

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.config.dropout, self.training)

    def look_back(self, tokens: Tensor, state: ShaRnnState) -> tuple[list[Tensor], ShaRnnState]:
        """The weights of every attention block."""
        return watch(self, Attention, tokens, state)

    def units(self, state: ShaRnnState) -> dict[str, Tensor]:
        """tanh(c) of every LSTM: what a unit remembers, whether or not its gate lets it out."""
        return {f"block {i}": block.lstm.c.tanh() for i, block in enumerate(state.blocks)}

    def outline(self) -> tuple[Part, ...]:
        """Embedding, the blocks, the tied classifier."""
        config, parts = self.config, [Part("embedding", (self.config.vocabulary, self.config.width))]
        if config.ngrams:
            orders = ", ".join(map(str, config.ngrams))
            parts.append(Part(f"n-grams of {orders}", (config.ngram_rows, config.width), state=config.reach))
        for i in range(config.blocks):
            parts.append(Part("LSTM", (config.width, config.width), i, state=2 * config.width))
            if i in config.attention:
                kept = config.window * config.width
                parts.append(Part("attention", (config.width, config.width), i, config.window, kept))
            parts.append(Part("Boom", (config.width, config.boom * config.width, config.width), i))
        return (*parts, Part("classifier (tied)", (config.width, config.vocabulary)))

    def collapse(self) -> ShaRnn:
        """A new model in which every over-parameterised vector is the finished one; its Config says so."""
        like = next(self.parameters())
        model = ShaRnn.blank(dataclasses.replace(self.config, collapsed=True), dtype=like.dtype, device=like.device)
        tensors = {name: t for name, t in self.state_dict().items() if ".value." not in name}
        with torch.no_grad():
            for name, module in self.named_modules():
                if isinstance(module, OverParameterised | FinishedVector):
                    tensors[f"{name}.vector"] = module()
        model.load_state_dict(tensors)
        return model.train(self.training)

    finished = collapse

    def spec(self, segment: int = 1) -> Spec:
        """Counts; attention is counted as it is computed: every query against every row that is there."""
        config, element = self.config, next(self.parameters()).element_size()
        width, heads = config.width, self.heads
        rows = config.window if config.window_rule == "segment" else config.window - 1 + segment
        recurrent = config.blocks * 16 * width**2
        dense = config.blocks * 2 * config.boom * width**2 + self.head.flops
        looking_back = heads * (2 * width**2 + 4 * width * rows)
        return Spec(
            parameters=count_parameters(self),
            parameters_in_use=count_parameters(self.finished()),
            heads=heads,
            receptive_field=None,
            state_bytes=element * width * (2 * config.blocks + heads * config.window) + 8 * config.reach,
            flops=recurrent + dense + looking_back,
            recurrent_flops=recurrent,
        )


def initialise(model: ShaRnn, config: ShaRnnConfig) -> None:
    """`paper`: linears and embedding N(0, 0.01/D), their biases 0, gates at 0. `desk`, what learns fastest in minutes:
    linears as torch has them, embedding N(0, 1/D), heads open. Both leave LSTMs as torch has them, layer norms at
    gain 1 and bias 0.
    """
    std = config.width**-0.5 * (1.0 if config.init == "desk" else 0.1)
    for name, parameter in model.head.named_parameters():
        nn.init.zeros_(parameter) if "bias" in name else nn.init.normal_(parameter, std=std)
    for module in model.modules():
        if config.init == "paper" and isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=std)
            nn.init.zeros_(module.bias)
        if config.init == "desk" and isinstance(module, Attention):
            module.open()

"""The tables of a recipe: every key, its type, its range, its default, and the comment that stands beside it.

`[model]` is not here: its keys belong to the model's own Config. What a value may be is said by its annotation, and
checked by `recipe.check_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class CorpusTable:
    """Which bytes, and how they are divided."""

    name: Annotated[str, Field(description="a corpus by name (`headcount corpora`); a path replaces stdlib")] = "stdlib"
    path: Annotated[str | tuple[str, ...] | None, Field(description="files, folders, globs, archives: joined")] = None
    split: Annotated[
        tuple[Share, ...] | None, Field(description="shares of train, valid and test; without it the corpus's own")
    ] = None
    sha256: Annotated[str | None, Field(description="the hash that the bytes must have")] = None

    def __post_init__(self) -> None:
        if self.split is None:
            return
        if len(self.split) not in (2, 3) or abs(sum(self.split) - 1) > 1e-9 or min(self.split[:2]) <= 0:
            raise ValueError("split must be two or three shares that add up to 1, train and valid above 0")

    @property
    def paths(self) -> tuple[str, ...]:
        """The files named by `path`, always as a tuple."""
        return (self.path,) if isinstance(self.path, str) else self.path or ()


@dataclass(frozen=True, kw_only=True)
class TokensTable:
    """How bytes become tokens."""

    kind: Annotated[
        Literal["bytes", "characters", "words", "wordpieces", "legacy-txl"],
        Field(description="each byte is a token; other kinds: docs/tokens.md"),
    ] = "bytes"
    vocabulary: Annotated[
        int | None, Field(ge=3, le=10_000_000, description="the most symbols: 8,000 wordpieces, else all there are")
    ] = None
    alphabet: Annotated[
        Literal["corpus", "text8"], Field(description="of characters: the corpus's own, or the 27 of text8")
    ] = "corpus"
    sha256: Annotated[str | None, Field(description="of what the kind learnt from the training split")] = None

    def __post_init__(self) -> None:
        if self.alphabet != "corpus" and self.kind != "characters":
            raise ValueError(f"alphabet = {self.alphabet!r} is of characters, not of {self.kind}")
        if self.vocabulary is not None and (self.kind in ("bytes", "legacy-txl") or self.alphabet == "text8"):
            raise ValueError(f"vocabulary = {self.vocabulary}: tokens of this kind are the same for every corpus")
        if self.kind in ("characters", "wordpieces") and (self.vocabulary or 256) < 256:
            raise ValueError(f"vocabulary = {self.vocabulary}: {self.kind} have at least the 256 bytes")


@dataclass(frozen=True, kw_only=True)
class BatchesTable:
    """How a corpus is cut into steps."""

    kind: Annotated[
        Literal["streams", "windows"], Field(description="lanes with carried state, or random windows without")
    ] = "streams"
    streams: Annotated[int, Field(ge=1, le=65_536, description="contiguous lanes of the corpus, read side by side")] = 8
    segment: Annotated[int, Field(ge=1, le=1_048_576, description="tokens of every stream in one step")] = 128
    lengths: Annotated[
        Literal["fixed", "merity2019"],
        Field(description="every segment the same, or drawn around `segment` as in the SHA-RNN's code"),
    ] = "fixed"
    accumulate: Annotated[int, Field(ge=1, description="parts that the streams of a step are split into")] = 1

    def __post_init__(self) -> None:
        if self.accumulate > self.streams:
            raise ValueError(f"accumulate = {self.accumulate} splits streams, and there are only {self.streams}")
        if self.kind == "windows" and self.lengths != "fixed":
            raise ValueError(f"windows all have the same length: lengths = {self.lengths!r} is of streams")


Decay = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What every optimiser with two moments has."""

    lr: Annotated[float, Field(gt=0, le=10, description="the highest learning rate of the schedule")] = 2e-3
    betas: Annotated[tuple[Decay, Decay], Field(description="decay of the two moments")] = (0.9, 0.99)
    eps: Annotated[float, Field(gt=0, description="added to the root of the second moment")] = 1e-8
    clip: Annotated[float, Field(gt=0, description="the largest norm of all gradients together")] = 0.25


@dataclass(frozen=True, kw_only=True)
class AdamWTable(Moments):
    """AdamW with decay on matrices only."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: Annotated[float, Field(ge=0, description="decoupled, on matrices only")] = 0.01


@dataclass(frozen=True, kw_only=True)
class MinTrustLambTable(Moments):
    """LAMB without bias correction and with a floor under the trust ratio (Merity 2019)."""

    kind: Literal["min-trust-lamb"] = "min-trust-lamb"
    betas: Annotated[tuple[Decay, Decay], Field(description="decay of the two moments")] = (0.9, 0.999)
    eps: Annotated[float, Field(gt=0, description="added to the root of the second moment")] = 1e-6
    weight_decay: Annotated[float, Field(ge=0, description="added to the update before its norm is taken")] = 0.0
    min_trust: Annotated[float, Field(ge=0, lt=1, description="the floor under the trust ratio")] = 0.25


@dataclass(frozen=True, kw_only=True)
class SgdTable:
    """Stochastic gradient descent with momentum: v ← μ·v + g, w ← w - rate·v; Nesterov's: w ← w - rate·(g + μ·v)."""

    kind: Literal["sgd"] = "sgd"
    lr: Annotated[float, Field(gt=0, le=10, description="the highest learning rate of the schedule")] = 0.003
    momentum: Annotated[float, Field(gt=0, lt=1, description="μ, how much of the last step goes on")] = 0.99
    nesterov: Annotated[bool, Field(description="the step is g + μ·v, and v has g in it already")] = False
    clip: Annotated[
        float | None, Field(gt=0, description="the largest norm of all gradients together; without it any")
    ] = None


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """What every schedule begins with: the rate rises linearly from 0."""

    warmup: Annotated[Share | None, Field(description="share of the steps during which the rate rises")] = None
    warmup_steps: Annotated[int | None, Field(ge=0, description="or the number of these steps; not both")] = None

    def __post_init__(self) -> None:
        if self.warmup is not None and self.warmup_steps is not None:
            raise ValueError("warmup and warmup_steps contradict each other: give one")


@dataclass(frozen=True, kw_only=True)
class ConstantTable(WarmUp):
    """The rate stays where it is."""

    kind: Literal["constant"] = "constant"


@dataclass(frozen=True, kw_only=True)
class CosineTable(WarmUp):
    """The rate falls along half a cosine."""

    kind: Literal["cosine"] = "cosine"
    floor: Annotated[Share, Field(description="share of the rate that is left at the last step")] = 0.05
    begins: Annotated[
        Literal["after-warmup", "at-step-0"], Field(description="where the cosine begins; warming up may hide a part")
    ] = "after-warmup"


@dataclass(frozen=True, kw_only=True)
class LinearTable(WarmUp):
    """The rate falls along a line."""

    kind: Literal["linear"] = "linear"
    floor: Annotated[Share, Field(description="share of the rate that is left at the last step")] = 0.05


@dataclass(frozen=True, kw_only=True)
class StepDownTable(WarmUp):
    """The rate is constant, then lower for the rest."""

    kind: Literal["step-down"] = "step-down"
    down_at: Annotated[Share, Field(description="share of the steps after which the rate drops")] = 0.92
    down_to: Annotated[Share, Field(description="share of the rate that it drops to")] = 0.5


@dataclass(frozen=True, kw_only=True)
class TrainTable:
    """How long, and what happens on the way."""

    steps: Annotated[int | None, Field(ge=1, description="steps in all")] = None
    epochs: Annotated[float | None, Field(gt=0, le=1e6, description="or passes over the training split; not both")] = (
        None
    )
    evaluate_every: Annotated[int | None, Field(ge=1, description="steps between evaluations; a tenth by default")] = (
        None
    )
    save_every: Annotated[int | None, Field(ge=1, description="steps between checkpoints; saved before evaluating")] = (
        None
    )
    give_up_after: Annotated[int, Field(ge=1, description="non-finite steps in a row that stop the run")] = 20
    initial: Annotated[str | None, Field(description="sha256 of the weights that `--from` started with")] = None

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise ValueError("steps and epochs contradict each other: give one")


@dataclass(frozen=True, kw_only=True)
class EvaluateTable:
    """How the figure is measured."""

    protocol: Annotated[str, Field(description="by name, docs/protocols.md")] = "carried"
    segment: Annotated[int | None, Field(ge=1, le=1_048_576, description="bytes fed at once; the protocol's own")] = (
        None
    )
    window: Annotated[int | None, Field(ge=1, le=16_777_216, description="other than the model's own")] = None
    clamp: Annotated[int | None, Field(ge=1, le=16_777_216, description="distances beyond it count as it")] = None
    limit: Annotated[int | None, Field(ge=1, description="during training, read at most these bytes of valid")] = None


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """What a paper printed; `info` shows it beside what is computed."""

    vocabulary: Annotated[int | None, Field(ge=1, description="symbols that the paper counted with")] = None
    parameters: Annotated[str | None, Field(description="as printed")] = None
    heads: Annotated[int | None, Field(ge=0, description="as printed")] = None
    valid: Annotated[float | None, Field(gt=0, description="as printed")] = None
    test: Annotated[float | None, Field(gt=0, description="as printed")] = None
    unit: Annotated[str | None, Field(description="of these figures, if not bits per byte")] = None
    protocol: Annotated[str | None, Field(description="how these figures were measured")] = None
    source: Annotated[str | None, Field(description="where they were printed")] = None


OptimiserTable = AdamWTable | MinTrustLambTable | SgdTable
ScheduleTable = ConstantTable | CosineTable | LinearTable | StepDownTable

OPTIMISERS: Mapping[str, type[OptimiserTable]] = {
    "adamw": AdamWTable,
    "min-trust-lamb": MinTrustLambTable,
    "sgd": SgdTable,
}
SCHEDULES: Mapping[str, type[ScheduleTable]] = {
    "constant": ConstantTable,
    "cosine": CosineTable,
    "linear": LinearTable,
    "step-down": StepDownTable,
}

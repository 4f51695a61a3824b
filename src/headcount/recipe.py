"""One file describes one run: the recipe, as plain frozen data.

A recipe is TOML, read top to bottom. `read` makes a `Recipe` of a file and `--set` overrides; whatever is wrong with it
is one sentence that names the key, says what is allowed and suggests the nearest valid key. `to_toml` writes a recipe
with every default filled in and a comment beside every key. The table `[model]` stays a plain mapping here: its keys
and defaults belong to the model's own Config, which is checked by the same `check_table`.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from headcount.errors import RequestError, nearest

T = TypeVar("T")
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class CorpusTable:
    """Which bytes, and how they are divided."""

    name: Annotated[str, Field(description="a corpus by name (`headcount corpora`); a path replaces stdlib")] = "stdlib"
    path: Annotated[str | tuple[str, ...] | None, Field(description="one file or several, joined")] = None
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

    kind: Annotated[Literal["bytes"], Field(description="each byte is a token")] = "bytes"


@dataclass(frozen=True, kw_only=True)
class BatchesTable:
    """How a corpus is cut into steps."""

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
    limit: Annotated[int | None, Field(ge=1, description="during training, read at most these bytes of valid")] = None


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """What a paper printed; `info` shows it beside what is computed."""

    vocabulary: Annotated[int | None, Field(ge=1, description="symbols that the paper counted with")] = None
    parameters: Annotated[str | None, Field(description="as printed")] = None
    heads: Annotated[int | None, Field(ge=0, description="as printed")] = None
    valid: Annotated[float | None, Field(gt=0, description="bits per byte as printed")] = None
    test: Annotated[float | None, Field(gt=0, description="bits per byte as printed")] = None
    protocol: Annotated[str | None, Field(description="how these figures were measured")] = None
    source: Annotated[str | None, Field(description="where they were printed")] = None


OptimiserTable = AdamWTable | MinTrustLambTable
ScheduleTable = ConstantTable | CosineTable | LinearTable | StepDownTable

OPTIMISERS: Mapping[str, type[OptimiserTable]] = {"adamw": AdamWTable, "min-trust-lamb": MinTrustLambTable}
SCHEDULES: Mapping[str, type[ScheduleTable]] = {
    "constant": ConstantTable,
    "cosine": CosineTable,
    "linear": LinearTable,
    "step-down": StepDownTable,
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All there is to know about a run."""

    seed: int = 1
    corpus: CorpusTable = field(default_factory=CorpusTable)
    tokens: TokensTable = field(default_factory=TokensTable)
    model: Mapping[str, Any] = field(default_factory=lambda: {"kind": "sha-rnn"})
    batches: BatchesTable = field(default_factory=BatchesTable)
    optimiser: OptimiserTable = field(default_factory=AdamWTable)
    schedule: ScheduleTable = field(default_factory=CosineTable)
    train: TrainTable = field(default_factory=TrainTable)
    evaluate: EvaluateTable = field(default_factory=EvaluateTable)
    published: PublishedTable | None = None

    def replace(self, section: str, **changes: Any) -> Recipe:
        """The same recipe with some keys of one table changed."""
        table = getattr(self, section)
        new = {**table, **changes} if isinstance(table, Mapping) else dataclasses.replace(table, **changes)
        changed: dict[str, Any] = {section: new}
        return dataclasses.replace(self, **changed)

    def to_dict(self) -> dict[str, Any]:
        """Plain nested data as TOML would give it: no `None`, lists for tuples."""
        plain: dict[str, Any] = {"seed": self.seed}
        for name in SECTION_NAMES:
            table = getattr(self, name)
            if table is not None:
                pairs = table if isinstance(table, Mapping) else vars(table)
                found = {key: _plain(value) for key, value in pairs.items() if value is not None}
                plain[name] = {"kind": found["kind"], **found} if "kind" in found else found
        return plain


SECTION_NAMES = tuple(f.name for f in dataclasses.fields(Recipe) if f.name != "seed")
_PLAIN_TABLES: Mapping[str, type] = {
    "corpus": CorpusTable,
    "tokens": TokensTable,
    "batches": BatchesTable,
    "train": TrainTable,
    "evaluate": EvaluateTable,
    "published": PublishedTable,
}
_TABLES_BY_KIND: Mapping[str, tuple[str, Mapping[str, type]]] = {
    "optimiser": ("adamw", OPTIMISERS),
    "schedule": ("cosine", SCHEDULES),
}


def read(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with `--set` overrides applied in order."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{path} is not TOML: {error}") from error
    return from_dict(tables, overrides)


def from_dict(tables: Mapping[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from nested data: checked, and refused with one sentence that names the key."""
    tables = {name: dict(table) if isinstance(table, Mapping) else table for name, table in tables.items()}
    for override in overrides:
        _apply_override(tables, override)
    seed = tables.pop("seed", 1)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise RequestError(f"seed = {seed!r}: must be a whole number from 0 to 2^63 - 1")
    for name, table in tables.items():
        if name not in SECTION_NAMES:
            raise RequestError(f"unknown key {name!r}: {nearest(name, (*SECTION_NAMES, 'seed'))}")
        if not isinstance(table, Mapping):
            raise RequestError(f"{name} = {table!r}: must be a table, [{name}]")
    sections: dict[str, Any] = {"model": {"kind": "sha-rnn", **tables.get("model", {})}}
    for name, table in tables.items():
        if name in _TABLES_BY_KIND:
            default, classes = _TABLES_BY_KIND[name]
            kind = table.get("kind", default)
            if not isinstance(kind, str) or kind not in classes:
                raise RequestError(f"{name}.kind = {kind!r}: {nearest(str(kind), classes)}")
            sections[name] = check_table(classes[kind], table, name)
        elif name != "model":
            sections[name] = check_table(_PLAIN_TABLES[name], table, name)
    return Recipe(seed=seed, **sections)


_RIVALS = {
    "train.steps": "epochs",
    "train.epochs": "steps",
    "schedule.warmup": "warmup_steps",
    "schedule.warmup_steps": "warmup",
}
"""An override of one replaces the other, which could not stand beside it."""


def _apply_override(tables: dict[str, Any], override: str) -> None:
    """`a.b=c`: c is read as TOML and, where that fails, as a plain string."""
    key, equals, text = override.partition("=")
    section, dot, name = key.strip().partition(".")
    if not equals or not section or (dot and not name):
        raise RequestError(f"--set {override}: must look like table.key=value")
    try:
        parsed = tomllib.loads(f"value = {text}")
        value = parsed["value"] if len(parsed) == 1 else text
    except tomllib.TOMLDecodeError:
        value = text
    if not dot:
        tables[section] = value
        return
    table = tables.setdefault(section, {})
    if not isinstance(table, dict):
        raise RequestError(f"--set {override}: {section!r} is not a table")
    if name == "kind" and table.get("kind") != value:  # keys that the new kind does not know mean nothing to it
        classes = _TABLES_BY_KIND.get(section, ("", {}))[1]
        known = typing.get_type_hints(classes[value]) if isinstance(value, str) and value in classes else {}
        tables[section] = table = {key: kept for key, kept in table.items() if key in known}
    table.pop(_RIVALS.get(key.strip(), ""), None)
    table[name] = value


def check_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """A frozen dataclass from one table; the first thing that is wrong with it becomes a `RequestError`."""
    hints = typing.get_type_hints(cls, include_extras=True)
    values = {}
    for key, value in table.items():
        if key not in hints:
            raise RequestError(f"unknown key '{where}.{key}': {nearest(key, hints)}")
        # Strict: "3" is not 3 and true is not 1. TOML knows inf and nan; no key of ours does.
        adapter = TypeAdapter(hints[key], config=ConfigDict(strict=True, allow_inf_nan=False))
        try:
            values[key] = adapter.validate_python(_tuples(value))
        except ValidationError as error:
            allowed = error.errors()[-1]["msg"].replace("Input should be", "must be").replace("tuple", "list")
            raise RequestError(f"{where}.{key} = {value!r}: {allowed}") from None
    try:
        return cls(**values)
    except ValueError as error:
        raise RequestError(f"[{where}] {error}") from None


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


def to_toml(recipe: Recipe, model_config: type | None = None) -> str:
    """The whole recipe as commented TOML; `model_config` lends the comments of `[model]`."""
    lines = [f"{f'seed = {recipe.seed}':<27} # of weights, drawn lengths and dropout"]
    for name, table in recipe.to_dict().items():
        if name == "seed":
            continue
        section = getattr(recipe, name)
        comments = _comments(model_config if name == "model" else type(section))
        comments.setdefault("kind", "which one; the other keys of this table are its own")
        lines += ["", f"[{name}]"]
        for key, value in table.items():
            pair = f"{key} = {_toml_value(value)}"
            lines.append(f"{pair:<27} # {comments[key]}" if key in comments else pair)
    return "\n".join(lines) + "\n"


def _comments(cls: type | None) -> dict[str, str]:
    """The description of every field of a dataclass that has one."""
    if cls is None or not dataclasses.is_dataclass(cls):
        return {}
    found = {}
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, FieldInfo) and extra.description:
                found[name] = extra.description
    return found


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)

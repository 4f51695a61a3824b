"""One file describes one run: the recipe, as plain frozen data.

A recipe is TOML, read top to bottom. `read` makes a `Recipe` of a file and `--set` overrides; whatever is wrong with it
is one sentence that names the key, says what is allowed and suggests the nearest valid key. `to_toml` writes a recipe
with every default filled in and a comment beside every key. The table `[model]` stays a plain mapping here: its keys
and defaults belong to the model's own Config, which is checked by the same `check_table`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from headcount.errors import RequestError, nearest
from headcount.tables import (
    OPTIMISERS,
    SCHEDULES,
    AdamWTable,
    BatchesTable,
    CorpusTable,
    CosineTable,
    EvaluateTable,
    OptimiserTable,
    PublishedTable,
    ScheduleTable,
    TokensTable,
    TrainTable,
)

T = TypeVar("T")


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
    for override in sorted(overrides, key=lambda one: _NAMES_THE_REST.match(one) is None):
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
    recipe = Recipe(seed=seed, **sections)
    if recipe.published is not None and recipe.corpus.name == "text8-part":
        raise RequestError("[published]: no published figure is on text8-part, and none stands beside it")
    return recipe


_RIVALS = {
    "train.steps": "epochs",
    "train.epochs": "steps",
    "schedule.warmup": "warmup_steps",
    "schedule.warmup_steps": "warmup",
}
"""An override of one replaces the other, which could not stand beside it."""


_NAMES_THE_REST = re.compile(r"\s*(corpus\.name|\w+\.kind)\s*=")
"""Overrides that come first, because they drop what belonged to another kind or corpus: never what was asked for."""


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
    if name == "kind" and table.get("kind") != value and section in (*_TABLES_BY_KIND, "model", "tokens"):
        classes = _TABLES_BY_KIND.get(section, ("", {}))[1]  # keys that the new kind does not know mean nothing to it
        known = typing.get_type_hints(classes[value]) if isinstance(value, str) and value in classes else {}
        tables[section] = table = {key: kept for key, kept in table.items() if key in known}
    if key.strip() == "corpus.name" and table.get("name", "stdlib") != value:
        table.clear()  # path, parts and hash are another corpus's
    table.pop(_RIVALS.get(key.strip(), ""), None)
    table[name] = value


def check_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """A frozen dataclass from one table; the first thing that is wrong with it becomes a `RequestError`."""
    hints = typing.get_type_hints(cls, include_extras=True)
    values = {}
    for key, value in table.items():
        if key not in hints:
            raise RequestError(f"unknown key '{where}.{key}': {nearest(key, hints)}")
        values[key] = check_value(hints[key], value, f"{where}.{key}")
    try:
        return cls(**values)
    except ValueError as error:
        raise RequestError(f"[{where}] {error}") from None


def check_value(hint: Any, value: Any, name: str) -> Any:
    """A value as its annotation wants it; what is wrong with it is said of `name`."""
    # Strict: "3" is not 3 and true is not 1. TOML knows inf and nan; no key of ours does.
    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
    try:
        return adapter.validate_python(_tuples(value))
    except ValidationError as error:
        allowed = error.errors()[-1]["msg"].replace("Input should be", "must be").replace("tuple", "list")
        raise RequestError(f"{name} = {value!r}: {allowed}") from None


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

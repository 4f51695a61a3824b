"""The models, by name. The table is lazy: a model's file (and torch) is imported when that model is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headcount.errors import RequestError, nearest
from headcount.recipe import check_table

if TYPE_CHECKING:
    from headcount.models.contract import Model

MODELS: Mapping[str, str] = {
    "sha-rnn": "headcount.models.sha_rnn:ShaRnn",
    "transformer-xl": "headcount.models.transformer_xl:TransformerXL",
    "char-transformer": "headcount.models.char_transformer:CharTransformer",
}


def model_class(kind: str) -> type[Model]:
    """The class behind a name."""
    if not isinstance(kind, str) or kind not in MODELS:
        raise RequestError(f"model.kind = {kind!r}: {nearest(str(kind), MODELS)}")
    module, _, name = MODELS[kind].partition(":")
    found: type[Model] = getattr(import_module(module), name)
    return found


def configure(table: Mapping[str, Any], vocabulary: int) -> tuple[type[Model], Any]:
    """The class and the checked Config of a recipe's `[model]`; the tokens say how large the vocabulary is."""
    keys = dict(table)
    cls = model_class(keys.pop("kind", "sha-rnn"))
    keys.setdefault("vocabulary", vocabulary)
    return cls, check_table(cls.Config, keys, "model")

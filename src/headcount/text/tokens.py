"""The kinds of token by name: learnt from a training split, or read back from where a model keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount import durable
from headcount.errors import DataError, RequestError
from headcount.tables import TokensTable
from headcount.text.cache import making
from headcount.text.characters import Characters, Text8Characters
from headcount.text.mapped import Text, sha256
from headcount.text.progress import say
from headcount.text.symbols import Bytes, LegacyTxl, Tokens, hash_of
from headcount.text.wordpieces import DEFAULT_VOCABULARY, Wordpieces
from headcount.text.words import Words

__all__ = ["Bytes", "Tokens", "described", "expected_vocabulary", "find", "fixed", "hash_of", "read", "table_of"]

LEARNT: Mapping[str, type[Characters | Words | Wordpieces]] = {
    "characters": Characters,
    "words": Words,
    "wordpieces": Wordpieces,
}
SAID_FROM = 10_000_000
"""Bytes from which on learning takes long enough to be announced."""


def fixed(table: TokensTable) -> Tokens | None:
    """The tokens that a recipe names, if they are the same for every corpus."""
    if table.kind == "bytes":
        return Bytes()
    if table.kind == "legacy-txl":
        return LegacyTxl()
    return Text8Characters() if table.alphabet == "text8" else None


def expected_vocabulary(table: TokensTable) -> int:
    """How many symbols a recipe's tokens will be; of kinds that take all there are, the fewest, before any corpus."""
    if (same := fixed(table)) is not None:
        return same.vocabulary
    return table.vocabulary or (DEFAULT_VOCABULARY if table.kind == "wordpieces" else 256)


def find(table: TokensTable, text: Text) -> Tokens:
    """The tokens that a recipe names: those that are learnt, from a training split; kept in the cache by its hash."""
    if (same := fixed(table)) is not None:
        return same
    kind = LEARNT[table.kind]
    most = f"-{table.vocabulary}" if table.vocabulary else ""
    with making(f"tokens-{table.kind}{most}-{sha256(text)[:24]}-rules{kind.rules}.json") as kept:
        if (known := _kept(kept)) is not None:
            return known
        if len(text) >= SAID_FROM:
            say(f"learning {table.kind} from {len(text) / 1e6:,.0f} MB")
        tokens = kind.learn(text, table.vocabulary)
        durable.write_json(kept, {"sha256": tokens.sha256, "learnt": tokens.learnt()})
        return tokens


def _kept(file: Path) -> Tokens | None:
    """What was learnt before, if it is there and whole."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return read(kept["learnt"]) if hash_of(kept["learnt"]) == kept["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError, DataError):
        return None


def described(tokens: Tokens) -> Mapping[str, Any]:
    """All there is to know of tokens, as plain data."""
    return tokens.learnt() or table_of(tokens)


def table_of(tokens: Tokens) -> dict[str, str]:
    """What a recipe says of these tokens at least."""
    alphabet = {"alphabet": "text8" if isinstance(tokens, Text8Characters) else "corpus"}
    return {"kind": tokens.kind, **(alphabet if tokens.kind == "characters" else {})}


def read(learnt: Mapping[str, Any]) -> Tokens:
    """Tokens from what `described` or `learnt` gave."""
    try:
        if learnt["kind"] in ("bytes", "legacy-txl"):
            return Bytes() if learnt["kind"] == "bytes" else LegacyTxl()
        if learnt.get("alphabet") == "text8":
            return Text8Characters()
        _require_rules(learnt)
        if learnt["kind"] == "characters":
            return Characters(learnt["beyond"])
        if learnt["kind"] == "words":
            return Words.of(learnt)
        if learnt["kind"] == "wordpieces":
            return Wordpieces(learnt["merges"])
    except RequestError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise DataError(f"the tokens are damaged: {error!r}") from error
    raise DataError(f"the tokens are damaged: there is no kind {learnt['kind']!r}")


def _require_rules(learnt: Mapping[str, Any]) -> None:
    """Refuse symbols that another version would read a text with otherwise: the model learnt other tokens."""
    kind = LEARNT.get(learnt["kind"])
    if kind is not None and learnt.get("rules", 1) != kind.rules:
        raise RequestError(
            f"these {kind.kind} were learnt by rules {learnt.get('rules', 1)}, and this headcount has {kind.rules}: "
            "use the version that the model was trained with"
        )

"""Kinds by name: learnt once from the training split, kept by its hash, read back or refused."""

import json
from pathlib import Path

import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import TokensTable
from headcount.text import tokens as kinds
from headcount.text.cache import cache_folder
from headcount.text.symbols import Bytes, LegacyTxl
from tests.conftest import make_text
from tests.text.kinds import LEARNT, SAMPLE, as_text, tokens_of


def kept_files() -> list[Path]:
    return sorted(cache_folder().glob("tokens-*.json"))


def test_kinds_that_are_the_same_for_every_corpus():
    assert type(kinds.find(TokensTable(), as_text(b""))) is Bytes
    assert isinstance(kinds.find(TokensTable(kind="legacy-txl"), as_text(b"")), LegacyTxl)
    assert kinds.find(TokensTable(kind="characters", alphabet="text8"), as_text(b"")).vocabulary == 27
    assert kinds.fixed(TokensTable(kind="words")) is None and kept_files() == []


@pytest.mark.parametrize("kind", LEARNT)
def test_what_is_learnt_is_learnt_once(kind, monkeypatch):
    table = TokensTable(kind=kind, vocabulary=300)
    first = kinds.find(table, as_text(SAMPLE))
    assert first.kind == kind and first.vocabulary <= 300 and len(kept_files()) == 1

    def fail(*_):
        raise AssertionError("learnt again")

    monkeypatch.setattr(kinds.LEARNT[kind], "learn", fail)
    again = kinds.find(table, as_text(SAMPLE))
    assert again.sha256 == first.sha256 and again.encode(SAMPLE).tolist() == first.encode(SAMPLE).tolist()
    for other in (TokensTable(kind=kind, vocabulary=301), TokensTable(kind=kind)):
        with pytest.raises(AssertionError, match="learnt again"):
            kinds.find(other, as_text(SAMPLE))
    with pytest.raises(AssertionError, match="learnt again"):
        kinds.find(table, as_text(SAMPLE[1:]))


@pytest.mark.parametrize("kind", LEARNT)
def test_what_other_rules_learnt_is_not_used(kind, monkeypatch):
    table, cls = TokensTable(kind=kind, vocabulary=300), kinds.LEARNT[kind]
    first = kinds.find(table, as_text(SAMPLE))
    assert "rules" not in first.learnt()  # the hashes of runs that are there stay as they are
    monkeypatch.setattr(cls, "rules", 2)
    again = kinds.find(table, as_text(SAMPLE))
    assert len(kept_files()) == 2 and again.learnt()["rules"] == 2 and again.sha256 != first.sha256
    assert kinds.read(again.learnt()).sha256 == again.sha256
    with pytest.raises(RequestError, match=f"{kind} were learnt by rules 1, and this headcount has 2"):
        kinds.read({key: value for key, value in again.learnt().items() if key != "rules"})


@pytest.mark.parametrize("kind", LEARNT)
def test_damage_of_what_is_kept_is_made_good(kind):
    table = TokensTable(kind=kind, vocabulary=300)
    right = kinds.find(table, as_text(SAMPLE))
    (file,) = kept_files()
    whole = file.read_bytes()
    digit = next(i for i in range(len(whole) // 2, len(whole)) if whole[i : i + 1].isalnum())
    changed = whole[:digit] + (b"1" if whole[digit : digit + 1] != b"1" else b"2") + whole[digit + 1 :]
    for damaged in (b"", whole[:100], b"[]", b"3", b"{}", b'{"learnt": {"kind": "runes"}}', b"\xff\xfe", changed):
        file.write_bytes(damaged)
        assert kinds.find(table, as_text(SAMPLE)).sha256 == right.sha256
        assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "learnt",
    [
        {},
        {"kind": "runes"},
        {"kind": "characters"},
        {"kind": "characters", "beyond": [-5_000_000]},
        {"kind": "characters", "beyond": [10**30]},
        {"kind": "characters", "beyond": [0xD800]},
        {"kind": "characters", "beyond": 3},
        {"kind": "words"},
        {"kind": "words", "words": ["a"], "layout": "plain"},
        {"kind": "words", "words": [1, 2], "layout": "plain"},
        {"kind": "words", "words": ["<eos>", "<unk>", "\u20ac"], "layout": "plain"},
        {"kind": "wordpieces"},
        {"kind": "wordpieces", "merges": [[97, 5_000]]},
        {"kind": "wordpieces", "merges": [[97]]},
        {"kind": "wordpieces", "merges": [[-1, 1]]},
        {"kind": "wordpieces", "merges": [[1, -1]]},
        {"kind": "wordpieces", "merges": [[97, 256]]},
        {"kind": "wordpieces", "merges": [["a", "b"]]},
        {"kind": "wordpieces", "merges": 5},
        [],
        3,
        None,
    ],
    ids=json.dumps,
)
def test_damaged_tokens_are_refused(learnt):
    with pytest.raises(DataError, match="tokens are damaged"):
        kinds.read(learnt)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"kind": "words", "alphabet": "text8"}, "of characters, not of words"),
        ({"kind": "bytes", "vocabulary": 300}, "the same for every corpus"),
        ({"kind": "legacy-txl", "vocabulary": 300}, "the same for every corpus"),
        ({"kind": "characters", "alphabet": "text8", "vocabulary": 300}, "the same for every corpus"),
        ({"kind": "characters", "vocabulary": 255}, "at least the 256 bytes"),
        ({"kind": "wordpieces", "vocabulary": 100}, "at least the 256 bytes"),
    ],
)
def test_tables_that_contradict_themselves(table, reason):
    with pytest.raises(ValueError, match=reason):
        TokensTable(**table)


def test_the_vocabulary_before_there_is_a_corpus():
    assert kinds.expected_vocabulary(TokensTable()) == 256
    assert kinds.expected_vocabulary(TokensTable(kind="wordpieces")) == 8_000
    assert kinds.expected_vocabulary(TokensTable(kind="words", vocabulary=5_000)) == 5_000
    assert kinds.expected_vocabulary(TokensTable(kind="characters", alphabet="text8")) == 27


@pytest.mark.parametrize("kind", ["bytes", "text8", "characters", "words", "wordpieces", "legacy-txl"])
def test_what_a_recipe_says_of_tokens(kind):
    table = TokensTable(**kinds.table_of(tokens_of(kind)))
    assert table.kind == tokens_of(kind).kind
    assert (kinds.fixed(table) is None) == (tokens_of(kind).learnt() is not None)


def test_a_missing_library_is_not_taken_for_damage(monkeypatch):
    table = TokensTable(kind="wordpieces", vocabulary=300)
    kinds.find(table, as_text(make_text(2_000)))
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(RequestError, match="wordpieces need the package"):
        kinds.find(table, as_text(make_text(2_000)))

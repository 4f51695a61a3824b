"""A text as tokens: by workers or not the same, prepared once, kept by content, mapped, made anew if damaged."""

import json
import os
import signal

import numpy as np
import pytest

from headcount.errors import DataError
from headcount.text import encoding
from headcount.text.cache import cache_folder
from headcount.text.encoding import Encoded, encode
from headcount.text.symbols import Bytes
from tests.conftest import make_text
from tests.text.kinds import ADVERSARIAL, ANY_TEXT, LEARNT, SAMPLE, as_text, tokens_of

LONG = SAMPLE + make_text(20_000, seed=9) + b"x" * 3_000 + b" " * 3_000 + "€ü".encode() * 700 + b"\xff\xfe\x80" * 500


@pytest.fixture
def small(monkeypatch):
    """What is long begins at 10 KB, and is cut every 4 KB."""
    monkeypatch.setattr(encoding, "KEPT_FROM", 10_000)
    monkeypatch.setattr(encoding, "AT_ONCE", 4_096)


def kept_files(suffix=".bin"):
    return sorted(path for path in cache_folder().glob(f"tokens-*{suffix}"))


@pytest.mark.parametrize("kind", ANY_TEXT)
def test_prepared_tokens_are_those_of_the_whole(kind, small):
    tokens = tokens_of(kind)
    found, whole = encode(as_text(LONG), tokens), tokens.encode_piece(LONG)
    assert np.array_equal(found.ids, whole.ids) and found.exact == whole.exact
    assert (found.spans is None) == (whole.spans is None)
    if whole.spans is not None:
        assert np.array_equal(found.spans, whole.spans)
    assert found.bytes == (len(whole.ids) if kind == "legacy-txl" else len(LONG))
    if kind != "legacy-txl":
        assert found.bytes_of(found.ids, found.spans) == len(LONG)
    assert len(kept_files()) == (kind != "bytes")


@pytest.mark.parametrize("kind", ["legacy-txl", "wordpieces"])
def test_what_other_rules_prepared_is_not_used(kind, small, monkeypatch):
    tokens = tokens_of(kind)
    encode(as_text(LONG), tokens)
    assert len(kept_files()) == 1
    monkeypatch.setattr(type(tokens), "rules", 2)
    monkeypatch.setattr(encoding, "_prepare", lambda *_: pytest.fail("prepared anew"))
    with pytest.raises(pytest.fail.Exception, match="prepared anew"):
        encode(as_text(LONG), tokens)


@pytest.mark.parametrize("kind", LEARNT)
def test_workers_give_what_this_process_gives(kind, small):
    tokens = tokens_of(kind)
    pieces = list(encoding._encoded_by_workers(as_text(LONG), tokens))
    assert len(pieces) > 5
    whole = tokens.encode_piece(LONG)
    assert np.array_equal(np.concatenate([piece.ids for piece in pieces]), whole.ids)
    if whole.spans is not None:
        assert np.array_equal(np.concatenate([piece.spans for piece in pieces]), whole.spans)
    assert all(piece.exact for piece in pieces) == whole.exact


def test_more_cores_than_pieces_and_workers_that_are_never_asked(small, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(5)), raising=False)
    monkeypatch.setattr(encoding, "AT_ONCE", 15_000)
    found = encode(as_text(LONG), tokens_of("characters"))
    assert np.array_equal(found.ids, tokens_of("characters").encode(LONG))
    with encoding._worker(tokens_of("characters")):
        pass


@pytest.mark.parametrize("kind", ["characters", "words", "wordpieces", "legacy-txl"])
def test_the_second_time_nothing_is_encoded(kind, small, monkeypatch):
    first = encode(as_text(LONG), tokens_of(kind))
    ids = np.array(first.ids)

    def fail(*_):
        raise AssertionError("encoded again")

    monkeypatch.setattr(encoding, "_encoded_pieces", fail)
    again = encode(as_text(LONG), tokens_of(kind))
    assert np.array_equal(again.ids, ids) and again.exact == first.exact
    assert isinstance(again.ids, np.memmap)
    with pytest.raises(AssertionError, match="encoded again"):
        encode(as_text(LONG + b"!"), tokens_of(kind))


def test_kinds_and_their_symbols_are_kept_apart(small):
    for kind in ("characters", "words", "words-spaced", "wordpieces", "legacy-txl"):
        encode(as_text(LONG), tokens_of(kind))
    assert len(kept_files()) == 5


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_damage_of_prepared_tokens_is_made_good(kind, small):
    right = np.array(encode(as_text(LONG), tokens_of(kind)).ids)
    (file,), (about,) = kept_files(), kept_files(".json")
    whole, said = file.read_bytes(), json.loads(about.read_text())
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    for damaged in (bytes(flipped), whole[:-4], b""):
        file.write_bytes(damaged)
        assert np.array_equal(encode(as_text(LONG), tokens_of(kind)).ids, right) and file.read_bytes() == whole
    for change in ({"dtype": "uint8"}, {"columns": 4}, {"exact": not said["exact"]}, {"dtype": None}, {"sha256": 3}):
        about.write_text(json.dumps({**said, **change}))
        assert np.array_equal(encode(as_text(LONG), tokens_of(kind)).ids, right)
        assert json.loads(about.read_text()) == said
    for damaged in ("", "[]", "{}", "7"):
        about.write_text(damaged)
        assert np.array_equal(encode(as_text(LONG), tokens_of(kind)).ids, right)
        assert json.loads(about.read_text()) == said
    about.unlink()
    assert np.array_equal(encode(as_text(LONG), tokens_of(kind)).ids, right)


def test_columns_are_views_of_the_map_in_lanes_too(small):
    found = encode(as_text(LONG), tokens_of("words"))
    lanes = found.ids[: len(found.ids) // 4 * 4].reshape(4, -1)
    assert np.shares_memory(lanes, found.ids) and found.spans is not None and found.ids.dtype == np.uint32
    assert encode(as_text(LONG), tokens_of("characters")).ids.dtype == np.uint16


@pytest.mark.parametrize(("kind", "content"), [("legacy-txl", b"\n"), ("words", b" ")])
def test_a_long_text_without_any_token(kind, content, small):
    for _ in range(2):
        found = encode(as_text(content * 20_000), tokens_of(kind))
        assert len(found.ids) == 0 and not found.exact
        assert found.bytes == (0 if kind == "legacy-txl" else 20_000)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_hardest_texts_whole_and_in_pieces(name, small, monkeypatch):
    monkeypatch.setattr(encoding, "KEPT_FROM", 1)
    monkeypatch.setattr(encoding, "AT_ONCE", 700)
    monkeypatch.setattr(encoding, "_encoded_by_workers", lambda text, tokens: in_this_process(text, tokens))
    for kind in ANY_TEXT:
        found, whole = (
            encode(as_text(ADVERSARIAL[name]), tokens_of(kind)),
            tokens_of(kind).encode_piece(ADVERSARIAL[name]),
        )
        assert np.array_equal(found.ids, whole.ids) and found.exact == whole.exact


def in_this_process(text, tokens):
    for begin, end in encoding.stretches(text, encoding.AT_ONCE, tokens.cut):
        yield tokens.encode_piece(text[begin:end].tobytes(), text[max(0, begin - 1) : begin].tobytes() or b"\n")


def test_short_texts_and_bytes_leave_nothing_behind():
    for kind in ANY_TEXT:
        encode(as_text(SAMPLE), tokens_of(kind))
    assert kept_files() == []
    text = as_text(SAMPLE)
    assert encode(text, Bytes()).ids is text


def test_a_worker_that_dies_is_a_sentence(small, monkeypatch):
    killed = []
    popen = encoding.subprocess.Popen

    def dying(*arguments, **options):
        process = popen(*arguments, **options)
        killed.append(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        return process

    monkeypatch.setattr(encoding.subprocess, "Popen", dying)
    with pytest.raises(DataError, match="has died"):
        encode(as_text(LONG), tokens_of("words"))
    assert killed and kept_files() == [] and not list(cache_folder().glob(".tmp-*"))


def test_workers_are_not_led_astray_by_files_around_them(small, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')\n")
    monkeypatch.chdir(tmp_path)
    assert len(encode(as_text(LONG), tokens_of("characters")).ids) > 0


def test_a_text_knows_its_bytes_whatever_its_tokens():
    found = encode(as_text(SAMPLE), tokens_of("wordpieces"))
    assert isinstance(found, Encoded) and found.bytes == len(SAMPLE) > len(found.ids)
    assert found.bytes_of(found.ids[:10], None) == len(tokens_of("wordpieces").decode(found.ids[:10]))
    words = encode(as_text(SAMPLE), tokens_of("words"))
    assert words.bytes_of(words.ids[5:9], words.spans[5:9]) == int(words.spans[5:9].sum())

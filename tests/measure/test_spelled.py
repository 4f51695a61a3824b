"""Nats for every byte of any tokens: divided by prefix mass, they add up to the tokens' own."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.measure import spelled
from headcount.measure.protocols import measure
from headcount.measure.score import score
from headcount.measure.spelled import Sorted, likeliest_bytes, score_bytes, sorter
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.tables import EvaluateTable
from headcount.text.encoding import encode
from tests.conftest import make_text
from tests.text.kinds import ANY_TEXT, SAMPLE, as_text, tokens_of

CONTENT = {"text8": b" the cat sat on the mat", "words-spaced": b" a b <unk> \n \n = c a = \n b"}


def model_for(tokens):
    torch.manual_seed(1)
    config = ShaRnnConfig(vocabulary=tokens.vocabulary, width=16, blocks=2, attention=(0,), window=2000)
    model = ShaRnn(config).double()
    with torch.no_grad():  # fresh weights are nearly uniform
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


SPELLINGS = st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=30, unique=True) | st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"\xff"]), min_size=1, max_size=4).map(b"".join), min_size=1, unique=True
)


@given(SPELLINGS, st.integers(0, 2**32))
def test_masses_are_those_of_a_loop_over_all_symbols(spellings, seed):
    draw = np.random.default_rng(seed)
    chances = draw.dirichlet(np.full(len(spellings), 0.5)) * 0.999 + 0.001 / len(spellings)
    order = Sorted(spellings)
    mass = chances[order.order]
    for symbol, spelling in enumerate(spellings):
        for i in range(len(spelling) + 1):
            low, high = order.range_of(spelling[:i])
            inside = {int(s) for s in order.order[low:high]}
            assert inside == {s for s, other in enumerate(spellings) if other.startswith(spelling[:i])}
        begins = [
            sum(p for p, s in zip(chances, spellings, strict=True) if s.startswith(spelling[:i])) for i in range(4)
        ]
        expected = [begins[i] / begins[i + 1] for i in range(len(spelling) - 1)]
        expected.append(begins[len(spelling) - 1] / chances[symbol])
        found = order.nats(mass, -math.log(chances[symbol]), spelling)
        assert np.allclose(found, np.log(expected), atol=1e-12) and (found >= 0).all()
        assert found.sum() == pytest.approx(-math.log(chances[symbol]), rel=1e-14)


def test_what_is_next_to_impossible_costs_its_nats_and_no_more():
    order = Sorted([b"a", b"ab", b"abc", b"b"])
    log_probs = np.array([-900.0, -800.0, -1000.0, 0.0])
    found = order.nats(np.exp(log_probs)[order.order], 1000.0, b"abc")
    assert np.isfinite(found).all() and found.sum() == 1000.0


@given(SPELLINGS, st.integers(0, 2**32))
def test_next_bytes_are_those_of_a_loop(spellings, seed):
    chances = np.random.default_rng(seed).dirichlet(np.ones(len(spellings)))
    order = Sorted(spellings)
    for prefix in {spelling[:i] for spelling in spellings for i in range(len(spelling))}:
        whole = sum(p for p, s in zip(chances, spellings, strict=True) if s.startswith(prefix))
        expected = {}
        for p, s in zip(chances, spellings, strict=True):
            if s.startswith(prefix) and len(s) > len(prefix):
                expected[s[len(prefix)]] = expected.get(s[len(prefix)], 0) + p / whole
        found = order.next_bytes(chances[order.order], prefix, 300)
        assert dict(found) == pytest.approx(expected)
        assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
        assert order.next_bytes(chances[order.order], prefix, 1) == found[:1]


@pytest.mark.parametrize("kind", [*ANY_TEXT, "text8"])
def test_one_number_for_every_byte_and_they_sum_to_the_figure(kind):
    tokens = tokens_of(kind)
    content = CONTENT.get(kind, SAMPLE[5_700:6_700] + b"  \xff \xe2\x82 unheard-of\n  ")
    model, text = model_for(tokens), encode(as_text(content), tokens)
    nats = np.concatenate(list(score_bytes(model, text)))
    assert nats.shape == (len(content),) and (nats >= 0).all()
    measured = measure(model, text, EvaluateTable())
    assert nats.sum() == pytest.approx(measured.nats, rel=1e-10)
    assert measured.bytes == text.bytes and measured.tokens["scored"] == len(text.ids)
    assert measured.bits_per_byte == pytest.approx(nats.sum() / math.log(2) / text.bytes)


def test_the_bytes_of_a_token_have_the_nats_of_that_token():
    tokens = tokens_of("wordpieces")
    model, text = model_for(tokens), encode(as_text(SAMPLE[:600]), tokens)
    own = np.concatenate(list(score(model, text.ids, start=tokens.start)))
    ends = np.cumsum(tokens.lengths[text.ids], dtype=np.int64)
    by_token = np.add.reduceat(np.concatenate(list(score_bytes(model, text))), np.concatenate([[0], ends[:-1]]))
    assert np.abs(own - by_token).max() < 1e-12 and (tokens.lengths[text.ids] > 1).any()


def test_an_unknown_word_divides_evenly_and_white_space_at_the_end_is_free():
    tokens = tokens_of("words")
    model, content = model_for(tokens), b"qqqqqqq qqq  "
    nats = np.concatenate(list(score_bytes(model, encode(as_text(content), tokens))))
    assert np.ptp(nats[:7]) == 0 and np.ptp(nats[7:11]) == 0 and (nats[11:] == 0).all() and (nats[:11] > 0).all()


def test_what_is_dropped_costs_nothing():
    tokens = tokens_of("legacy-txl")
    nats = np.concatenate(list(score_bytes(model_for(tokens), encode(as_text(b"ab\n\nc"), tokens))))
    assert (nats[[2, 3]] == 0).all() and (nats[[0, 1, 4]] > 0).all()


@pytest.mark.parametrize("kind", ANY_TEXT)
def test_an_empty_text(kind):
    tokens = tokens_of(kind)
    assert sum(len(piece) for piece in score_bytes(model_for(tokens), encode(as_text(b""), tokens))) == 0


@pytest.mark.parametrize("kind", ["bytes", "characters", "wordpieces", "words"])
def test_the_likeliest_bytes_and_the_same_nats(kind):
    tokens = tokens_of(kind)
    model, text = model_for(tokens), encode(as_text(make_text(200)), tokens)
    nats, expected = likeliest_bytes(model, text, 300)
    assert np.allclose(nats, np.concatenate(list(score_bytes(model, text))))
    assert len(expected) == len(nats) == 200
    if kind == "bytes":
        chances = [dict(places)[byte] for byte, places in zip(text.text, expected, strict=True)]
        assert np.allclose(-np.log(chances), nats)
    for places in expected:
        assert 0 < sum(p for _, p in places) < 1 + 1e-9


@pytest.mark.parametrize("kind", ["bytes", "legacy-txl"])
def test_of_single_bytes_the_largest_are_taken_and_nothing_is_summed(kind, monkeypatch):
    tokens, content = tokens_of(kind), b"ab\n\nc" + make_text(100)
    model, text = model_for(tokens), encode(as_text(content), tokens)
    monkeypatch.setattr(Sorted, "next_bytes", None)  # 257 sums a byte made a page seven times slower than scoring
    nats, expected = likeliest_bytes(model, text, 10)
    assert np.allclose(nats, np.concatenate(list(score_bytes(model, text)))) and len(expected) == len(content)
    monkeypatch.undo()
    fed = torch.from_numpy(np.concatenate([[tokens.start], text.ids[:-1]]).astype(np.int64))
    with torch.no_grad():
        rows = model.head.log_probs(model(fed[None], model.start(1))[0])[0].exp().numpy()
    order, rows = Sorted(tokens.spellings), iter(rows)
    for byte, found in zip(content, expected, strict=True):
        if kind == "legacy-txl" and byte == 10:
            assert found == []  # it has no token: nothing was expected
            continue
        plain = order.next_bytes(next(rows)[order.order], b"", 10)
        assert [b for b, _ in found] == [b for b, _ in plain]
        assert [p for _, p in found] == pytest.approx([p for _, p in plain])


def test_only_words_have_two_orders():
    after = sorter(tokens_of("words"))
    assert after(tokens_of("words").start) is not after(1 + tokens_of("words").start) is after(3)
    assert sorter(tokens_of("wordpieces"))(3) is not None
    same = sorter(tokens_of("wordpieces"))
    assert same(10) is same(300)


def test_a_text_without_its_newlines_is_scored_piece_by_piece(monkeypatch):
    tokens = tokens_of("legacy-txl")
    text = encode(as_text(b"\n\nab\nc" + make_text(700) + b"\n"), tokens)
    model = model_for(tokens)
    whole = np.concatenate(list(score(model, text.ids, start=tokens.start)))
    monkeypatch.setattr(spelled, "BYTES_IN_A_PIECE", 100)
    pieces = list(score_bytes(model, text))
    assert max(map(len, pieces)) <= 100
    nats = np.concatenate(pieces)
    assert len(nats) == len(text.text) and not nats[text.text == 10].any()
    assert np.array_equal(nats[text.text != 10], whole)

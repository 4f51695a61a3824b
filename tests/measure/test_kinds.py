"""Bytes by what they are, and what a text does at each of them."""

import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headcount.measure.features import correlations, features
from headcount.measure.kinds import by_kind, by_place_in_word, place_in_word


def array(text):
    return np.frombuffer(text, dtype=np.uint8)


@given(st.binary(min_size=1, max_size=300))
def test_every_byte_is_of_exactly_one_kind(text):
    bits = np.arange(len(text), dtype=float)
    shares = by_kind(array(text), bits)
    assert sum(s.count for s in shares) == len(text)
    assert np.isclose(sum(s.bits for s in shares), bits.sum())
    letters = sum(s.count for s in shares if s.name == "letters")
    beyond = sum(s.count for s in shares if s.name == "beyond ASCII")
    assert letters <= sum(s.count for s in by_place_in_word(array(text), bits)) <= letters + beyond


def test_kinds_and_places_by_example():
    text = array("Hi <b>abcde</b> 42\n\x00é!".encode())
    found = {s.name: s.count for s in by_kind(text, np.ones(len(text)))}
    assert found == {
        "letters": 9,
        "digits": 2,
        "white space": 3,
        "markup": 5,
        "other punctuation": 1,
        "beyond ASCII": 2,
        "control bytes": 1,
    }
    assert place_in_word(array(b"ab1cde f")).tolist() == [1, 2, 0, 1, 2, 3, 0, 1]


def test_letters_beyond_ascii_are_letters():
    assert place_in_word(array("naïve cafés".encode())).tolist() == [1, 2, 3, 3, 4, 5, 0, 1, 2, 3, 4, 4, 5]
    assert place_in_word(array("да–не“x".encode())).tolist() == [1, 1, 2, 2, 0, 0, 0, 1, 1, 2, 2, 0, 0, 0, 1]
    assert place_in_word(array("e\u0301t𐌰".encode())).tolist() == [1, 2, 2, 3, 4, 4, 4, 4]  # a mark; four bytes
    assert place_in_word(array(b"a\xffb\xc3")).tolist() == [1, 0, 1, 0]  # no UTF-8
    assert place_in_word(array(b"")).tolist() == []


@given(st.text(max_size=50))
def test_places_are_counted_in_letters(text):
    place, expected = 0, []
    for character in text.encode("utf-8", "replace").decode():
        place = place + 1 if unicodedata.category(character)[0] in "LM" else 0
        expected += [place] * len(character.encode())
    assert place_in_word(array(text.encode("utf-8", "replace"))).tolist() == expected


def test_features_by_example():
    found = features(array(b'a"b(c[1])"\nxy'))
    assert found["in quotes"].tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    assert found["bracket depth"].tolist() == [0, 0, 0, 1, 1, 2, 2, 1, 0, 0, 0, 0, 0]
    assert found["column"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    assert found["digit"].tolist() == [0] * 6 + [1] + [0] * 6
    assert found["position in word"].tolist() == [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2]


def test_correlations_are_pearsons_and_0_for_what_stands_still():
    draw = np.random.default_rng(0)
    units, feature = draw.normal(size=(50, 3)), draw.normal(size=50)
    units[:, 1] = 7
    units[:, 2] = -feature
    found = correlations(units, feature)
    assert np.allclose(found, [np.corrcoef(units[:, 0], feature)[0, 1], 0, -1])

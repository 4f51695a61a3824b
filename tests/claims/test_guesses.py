"""Guesses: the beam finds what an exhaustive search finds, ranks are ranks, and an end is a guess too."""

import itertools
import math

import numpy as np
import pytest

from headcount.claims.branching import branches
from headcount.claims.guesses import MOST_GUESSES, Guessed, Openings, guess, piece_ranks, summed_up, whole_words
from headcount.text.encoding import encode
from headcount.text.symbols import Bytes
from headcount.text.words import Words
from tests.claims.conftest import small_model
from tests.claims.test_segmentations import brute_force


def branch_before(model, tokens, text, place):
    return next(branches(model, encode(np.frombuffer(text, dtype=np.uint8), tokens), [place]))


def names_of(symbols, openings):
    return {openings.spellings[symbol] for symbol in symbols}


def test_symbols_by_what_they_do_to_a_word():
    openings = Openings([b" ", b" a", b"ab", b",", b" \n", b" a,", b"a,", b"\n", b" ,", b"\xc3", b"a\n", b"1"])
    assert names_of(openings.begins, openings) == {b" ", b" a"}
    assert names_of(openings.goes_on, openings) == {b"ab", b"\xc3"}
    assert names_of(openings.ends, openings) == {b" ", b" a", b",", b" \n", b" a,", b"\n", b" ,", b"1"}
    assert names_of(openings.begins_and_ends, openings) == {b" a,"}
    assert names_of(openings.goes_on_and_ends, openings) == {b"a,", b"a\n"}
    assert openings.letters_of(5, True) == b" a" and openings.letters_of(6, False) == b"a"


def test_the_beam_finds_what_is_likeliest_and_sums_over_segmentations(wordpieces):
    model, before = small_model(wordpieces.vocabulary, seed=2), b"ba."
    with np.errstate(all="ignore"):
        branch = branch_before(model, wordpieces, before + b" ab", len(wordpieces.encode(before)))
    found = whole_words(branch, Openings(wordpieces.spellings), width=400)
    delimiters = [value for value in range(128) if not chr(value).isalpha()]
    for word in (b" ab", b" aba"):
        mass = sum(brute_force(model, wordpieces, before, word + bytes([value])) for value in delimiters)
        assert found[word] == pytest.approx(mass, rel=1e-4), word
    assert all(word.startswith(b" ") and len(word) > 1 for word in found)


def test_ranks_of_pieces_count_what_was_likelier():
    model, tokens, text = small_model(256), Bytes(), b"is it so?"
    openings = Openings(tokens.spellings)
    symbols = list(b" it")
    branch = branch_before(model, tokens, text, 2)
    ranks = piece_ranks(branch, symbols, openings)
    letters = [v for v in range(256) if (chr(v).isascii() and chr(v).isalpha()) or v >= 128]
    rest = [v for v in range(256) if v not in letters]
    expected = []
    for place in (3, 4, 5):  # the space is no guess: nothing else could begin a word
        own = np.exp(branch_before(model, tokens, text, place).log_probs[0])
        options = [*own[letters], own[rest].sum()]
        true = own[text[place]] if place < 5 else own[rest].sum()
        expected.append(1 + sum(option > true for option in options))
    assert ranks == expected
    assert Guessed(None, (2, 4)).wrong_by_piece == 4 and Guessed(None, (2, 4)).multiplied_bits == 3


def test_a_word_beyond_the_beam_has_no_rank():
    model, tokens = small_model(256), Bytes()
    openings = Openings(tokens.spellings)
    text = b"so it is"
    branch = branch_before(model, tokens, text, 2)
    found = whole_words(branch, openings)
    assert len(found) >= MOST_GUESSES
    best = max(found, key=found.get)
    assert guess(branch, best, list(best), openings).whole == 1
    assert guess(branch, b" " + b"q" * 40, list(b" q"), openings).whole is None


def test_words_are_guessed_by_their_letters():
    tokens = Words([b"ab", b"ab,", b"cd", b"<eos>", b"<unk>"], "plain")
    model = small_model(tokens.vocabulary)
    branch = branch_before(model, tokens, b"ab cd", 1)
    own = np.exp(branch.log_probs[0])
    openings = Openings(tokens.spellings)
    found = whole_words(branch, openings)
    assert found[b" cd"] == pytest.approx(own[2], rel=1e-5)  # what comes next always ends it
    assert found[b" ab"] == pytest.approx(own[0] + own[1], rel=1e-5)
    rank = 1 + sum(own[i] > own[2] for i in (0, 1))
    assert piece_ranks(branch, [2], openings) == [rank]


def test_guesses_add_up_and_multiply():
    for ranks in itertools.product((1, 2, 3), repeat=2):
        made = Guessed(1, ranks)
        assert 2**made.multiplied_bits == pytest.approx(math.prod(ranks)) and made.wrong_by_piece == sum(ranks) - 2


def test_what_is_right_at_once_costs_nothing_in_however_many_pieces():
    at_once = summed_up([Guessed(1, (1,)), Guessed(1, (1, 1, 1))])
    assert at_once["without"]["wrong"] == at_once["with"]["wrong"] == 0 and at_once["with"]["first"] == 1
    assert at_once["saved"] == {"guesses": 0, "error": 0}
    found = summed_up([Guessed(4, (1, 2)), Guessed(None, (90, 20))])
    assert found["without"] == {"first": 0, "within": 0.5, "wrong": (3 + MOST_GUESSES) / 2}
    assert found["with"]["wrong"] == (1 + MOST_GUESSES) / 2 and found["with"]["within"] == 0.5
    assert found["pieces"] == 2 and found["with"]["first_piece"] == 0.25
    assert found["saved"] == {"guesses": 1, "error": pytest.approx(1)}

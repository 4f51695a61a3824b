"""Wordpieces: merges by frequency within words, the same for the same text, over bytes of any kind."""

import os
import subprocess
import sys
from collections import Counter
from itertools import accumulate, pairwise

import pytest

from headcount.errors import RequestError
from headcount.text import wordpieces
from headcount.text.wordpieces import WORD, Wordpieces, piece_cut
from tests.conftest import make_text
from tests.text.kinds import ADVERSARIAL, as_text, tokens_of


def plain_merges(text: bytes, count: int) -> list[bytes]:
    """Byte pairs by the book: the most frequent pair of neighbours within words, until two are equally frequent."""
    words = {tuple(bytes([b]) for b in word): n for word, n in Counter(WORD.findall(text)).items()}
    made = []
    for _ in range(count):
        pairs = Counter()
        for word, n in words.items():
            for pair in pairwise(word):
                pairs[pair] += n
        (pair, most), (_, second) = pairs.most_common(2)
        if most == second:
            break
        made.append(pair[0] + pair[1])
        words = {_merged(word, pair): n for word, n in words.items()}
    return made


def _merged(word, pair):
    found, i = [], 0
    while i < len(word):
        if word[i : i + 2] == pair:
            found.append(pair[0] + pair[1])
            i += 2
        else:
            found.append(word[i])
            i += 1
    return tuple(found)


def test_merges_are_those_of_the_book():
    text = make_text(9_000, seed=7) + b" aaa aaaa" * 35
    expected = plain_merges(text, 30)
    assert len(expected) > 20
    assert list(Wordpieces.learn(as_text(text), 256 + len(expected)).spellings[256:]) == expected


def test_words_are_cut_by_class_and_hold_every_byte():
    assert WORD.findall(b"Ab12 cd, \n  e\xc3\xa9!") == [b"Ab", b"12", b" cd", b",", b" \n  ", b"e\xc3\xa9", b"!"]
    assert [len(word) for word in WORD.findall(b" " + b"a" * 130)] == [64, 63, 4]
    assert [len(word) for word in WORD.findall(b" " * 130 + b"a")] == [64, 64, 2, 1]
    for content in ADVERSARIAL.values():
        assert b"".join(WORD.findall(content)) == content


@pytest.mark.parametrize(
    ("content", "place", "cut"),
    [
        (b"ab\n cd", 3, 2),  # a space belongs to the white space before it
        (b"ab  cd", 4, 2),  # and may belong to the word after it
        (b"a" * 200, 100, 63),  # a word of 63 letters ends there; at 100 one goes on
        (b"\n" * 130, 1, 64),  # the first word ends after the place
    ],
)
def test_a_text_is_cut_where_a_word_ends(content, place, cut):
    assert piece_cut(as_text(content), 0, place) == cut
    assert cut in accumulate(map(len, WORD.findall(content)))


def test_no_piece_goes_beyond_a_word():
    tokens = tokens_of("wordpieces")
    assert tokens.vocabulary == 400 and all(WORD.fullmatch(spelling) for spelling in tokens.spellings)
    assert len(set(tokens.spellings)) == 400


def test_pieces_are_fewer_than_bytes():
    text = make_text(6_000)
    assert len(tokens_of("wordpieces").encode(text)) < 0.65 * len(text)


def test_learning_twice_gives_the_same_merges():
    text = as_text(make_text(30_000, seed=4))
    assert Wordpieces.learn(text, 600).merges == Wordpieces.learn(text, 600).merges
    code = (
        "import sys, numpy; from headcount.text.wordpieces import Wordpieces;"
        "print(Wordpieces.learn(numpy.frombuffer(sys.stdin.buffer.read(), dtype=numpy.uint8), 600).sha256)"
    )
    expected = Wordpieces.learn(text, 600).sha256
    for threads, seed in (("1", "1"), ("3", "2")):
        env = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], input=text.tobytes(), env=env, capture_output=True, check=True
        )
        assert done.stdout.decode().strip() == expected


def test_learning_does_not_depend_on_where_the_text_is_read_apart(monkeypatch):
    text = as_text(make_text(20_000))
    whole = Wordpieces.learn(text, 500).merges
    monkeypatch.setattr(wordpieces, "READ_AT_ONCE", 300)
    assert Wordpieces.learn(text, 500).merges == whole


def test_of_a_long_text_stretches_from_everywhere_are_read(monkeypatch):
    monkeypatch.setattr(wordpieces, "READ_AT_ONCE", 100)
    monkeypatch.setattr(wordpieces, "LEARNT_FROM", 1_000)
    text = as_text(make_text(10_000))
    read = list(wordpieces._spread(text))
    assert 800 < sum(map(len, read)) < 1_300 and read[0] in text.tobytes()[:200] and read[-1] in text.tobytes()[8_500:]


def test_a_text_with_few_pairs_has_fewer_symbols():
    assert Wordpieces.learn(as_text(b"ab " * 400), 8_000).vocabulary < 270


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(wordpieces, "REMEMBERED", 10)
    tokens = Wordpieces(tokens_of("wordpieces").merges)
    text = make_text(5_000)
    assert tokens.encode(text).tolist() == tokens_of("wordpieces").encode(text).tolist()
    assert len(tokens._known) <= 10


def test_without_the_library_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(RequestError, match="pip install tokenizers"):
        Wordpieces.learn(as_text(b"abc"), None)

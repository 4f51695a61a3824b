"""Characters: code points by frequency over the byte values, escapes for everything else; the 27 of text8."""

import numpy as np
import pytest

from headcount.errors import RequestError
from headcount.text import characters
from headcount.text.characters import Characters, Text8Characters
from tests.text.kinds import as_text, tokens_of


def test_code_points_beyond_ascii_follow_the_bytes_by_frequency():
    learnt = Characters.learn(as_text("aaé€€€ßé 東\udcff".encode("utf-8", "surrogateescape")), None)
    assert [chr(point) for point in learnt.beyond] == ["€", "é", "ß", "東"]  # equal ones by their number
    assert learnt.vocabulary == 260 and learnt.spellings[256] == "€".encode() and learnt.spellings[97] == b"a"
    assert learnt.encode("a€".encode()).tolist() == [97, 256]
    assert Characters.learn(as_text("€é€".encode()), 257).beyond == (ord("€"),)
    assert Characters.learn(as_text(b"\xff\x80abc"), None).vocabulary == 256


@pytest.mark.parametrize(
    "content",
    [
        "ж".encode(),  # a character that was not there
        b"\xff",
        "€".encode()[:2],
        b"\xed\xa0\x80",  # half of a pair: no UTF-8
        b"\xf5\x80\x80\x80",  # beyond Unicode
        b"\xc0\xaf",  # too long for what it says
    ],
)
def test_what_has_no_symbol_is_written_as_its_bytes(content):
    assert tokens_of("characters").encode(content).tolist() == list(content)


def test_learning_does_not_depend_on_where_the_text_is_read_apart(monkeypatch):
    content = as_text(("€é東😀" * 50 + "x").encode() + b"\xe2\x82" * 9)
    whole = Characters.learn(content, None)
    for size in (1, 2, 3, 5, 64):
        monkeypatch.setattr(characters, "READ_AT_ONCE", size)
        assert Characters.learn(content, None).beyond == whole.beyond


def test_a_character_of_four_bytes_is_never_cut():
    content, tokens = "😀é😀東😀x😀😀".encode(), Characters([ord(c) for c in "😀é東"])
    whole, begins = tokens.encode(content).tolist(), {len("😀é😀東😀x😀😀"[:i].encode()) for i in range(9)}
    assert len(whole) == 8
    for place in range(4, len(content)):
        cut = tokens.cut(as_text(content), 0, place)
        assert cut in begins and place - 4 < cut <= place
        assert [*tokens.encode(content[:cut]), *tokens.encode(content[cut:])] == whole


def test_the_27_symbols_of_text8():
    tokens = Text8Characters()
    assert tokens.vocabulary == 27 and tokens.spellings[tokens.start] == b" "
    assert tokens.encode(b" az").tolist() == [0, 1, 26] and tokens.decode([1, 0, 26]) == b"a z"
    assert tokens.encode_piece(b"abc").exact
    with pytest.raises(RequestError, match=r"b'A' is none of the 27 symbols.*alphabet = 'corpus'"):
        tokens.encode(b"aAb\n")


def test_tokens_of_a_long_text_are_narrow():
    assert np.issubdtype(tokens_of("characters").encode(b"abc").dtype, np.integer)
    assert tokens_of("text8").encode(b"abc").dtype == np.uint8

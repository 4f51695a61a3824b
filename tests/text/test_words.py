"""Words: by frequency with a cut-off, `<eos>` for a line's end, `<unk>` for the rest, and two layouts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.text import words
from headcount.text.words import EOS, UNKNOWN, Words
from tests.text.kinds import as_text

PLAIN = b"the cat sat\nthe dog sat\nthe cat\n"
SPACED = b" \n = The cat = \n \n the cat <unk> sat \n the dog sat \n"


def test_words_are_ordered_by_frequency_and_the_rest_is_unknown():
    learnt = Words.learn(as_text(PLAIN), None)
    assert learnt.words == (EOS, b"the", b"cat", b"sat", b"dog", UNKNOWN)  # equal ones by their bytes
    cut = Words.learn(as_text(PLAIN), 4)
    assert cut.words == (EOS, UNKNOWN, b"the", b"cat")  # what was cut off counts as unknown
    assert cut.encode(b"the dog\n").tolist() == [2, 1, 0]
    assert Words.learn(as_text(PLAIN), 6).words == learnt.words


@pytest.mark.parametrize(("text", "layout"), [(PLAIN, "plain"), (SPACED, "spaced")])
def test_a_text_of_its_layout_is_restored(text, layout):
    learnt = Words.learn(as_text(text), None)
    piece = learnt.encode_piece(text)
    assert learnt.layout == layout and piece.exact and learnt.decode(piece.ids) == text
    assert piece.spans.sum() == len(text)
    assert learnt.spellings[learnt.start] == (b"\n" if layout == "plain" else b" \n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"the bird sat\n", "an unknown word"),
        (b"the  cat\n", "two spaces"),
        (b"the cat \n", "a space before the end"),
        (b"the\tcat\n", "a tab"),
        (b"the cat\r\n", "CRLF"),
        (b"<eos> the\n", "the letters of the end of a line"),
        (b"the cat  ", "white space at the end"),
    ],
)
def test_what_is_not_restored_says_so(text, why):
    piece = Words.learn(as_text(PLAIN), None).encode_piece(text)
    assert not piece.exact, why


def test_the_letters_of_the_end_of_a_line_do_not_end_one():
    learnt = Words.learn(as_text(PLAIN), None)
    ids = learnt.encode(b"the <eos> cat\n").tolist()
    assert [learnt.words[i] for i in ids] == [b"the", UNKNOWN, b"cat", EOS]


def test_an_unknown_of_the_text_itself_is_a_word():
    learnt = Words.learn(as_text(SPACED), None)
    assert learnt.encode_piece(b" the <unk> cat \n").exact and not learnt.encode_piece(b" the bird cat \n").exact


def test_a_line_that_goes_on_has_its_space():
    learnt = Words.learn(as_text(PLAIN), None)
    the = learnt.encode(b"the").tolist()
    assert learnt.decode(the) == b"the" and learnt.decode(the, before=the[0]) == b" the"
    assert learnt.spelled(learnt.start)[the[0]] == b"the" and learnt.spelled(the[0])[the[0]] == b" the"
    assert not learnt.encode_piece(b"the", before=b"x").exact and learnt.encode_piece(b" the", before=b"x").exact


WORDS = st.sampled_from([b"a", b"bc", b"<unk>", "ü".encode(), b"\xff"])


@given(st.lists(st.lists(WORDS)), st.sampled_from(["plain", "spaced"]))
def test_whatever_follows_a_layout_is_restored(lines, layout):
    learnt = Words([EOS, UNKNOWN, b"a", b"bc", "ü".encode(), b"\xff"], layout)
    if layout == "plain":
        text = b"".join(b" ".join(line) + b"\n" for line in lines)
    else:
        text = b"".join(b"".join(b" " + word for word in line) + b" \n" for line in lines)
    piece = learnt.encode_piece(text)
    assert piece.exact and learnt.decode(piece.ids) == text


def test_learning_does_not_depend_on_where_the_text_is_read_apart(monkeypatch):
    content = as_text(PLAIN * 5 + b"one   \t two\r\n" + b"x" * 500)
    whole = Words.learn(content, None)
    for size in (1, 7, 64):
        monkeypatch.setattr(words, "READ_AT_ONCE", size)
        assert words.Words.learn(content, None).words == whole.words


def test_a_mebibyte_without_a_space_is_one_word():
    content = as_text(b"a b " + b"x" * (1 << 20) + b" c d\n")
    assert words.word_cut(content, 0, 100) == 3
    assert words.word_cut(content, 3, 100) == 4 + (1 << 20)


def test_rare_words_are_forgotten_where_only_frequent_ones_can_become_symbols(monkeypatch):
    content = b"".join(b"the cat %d sat %d\n" % (number, number) for number in range(3_000))
    whole = Words.learn(as_text(content), 6)
    monkeypatch.setattr(words, "COUNTED", 100)
    monkeypatch.setattr(words, "READ_AT_ONCE", 500)
    again = Words.learn(as_text(content), 6)
    assert again.words[:5] == whole.words[:5] and set(again.words[:5]) == {EOS, UNKNOWN, b"the", b"cat", b"sat"}
    assert len(Words.learn(as_text(content), None).words) == 3_005  # all there are

"""What every kind of token keeps: texts come back, tokens know their bytes, and pieces are the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.text import tokens as kinds
from headcount.text.mapped import stretches
from headcount.text.symbols import to_bytes, to_text
from tests.text.kinds import ADVERSARIAL, ANY_TEXT, CONTENT, LOSSLESS, as_text, tokens_of


def in_pieces(tokens, content, size):
    """Tokens, spans and exactness of a text that is cut every `size` bytes or so."""
    text = as_text(content)
    places = list(stretches(text, size, tokens.cut))
    assert [begin for begin, _ in places[1:]] == [end for _, end in places[:-1]]
    assert all(begin < end for begin, end in places) and (not content or places[-1][1] == len(content))
    found = [tokens.encode_piece(content[b:e], content[max(0, b - 1) : b] or b"\n") for b, e in places]
    ids = np.concatenate([np.zeros(0, np.int64), *(piece.ids for piece in found)])
    spans = None
    if found and found[0].spans is not None:
        spans = np.concatenate([piece.spans for piece in found])
    return ids, spans, all(piece.exact for piece in found)


def assert_pieces_are_the_whole(tokens, content, size):
    whole = tokens.encode_piece(content)
    ids, spans, exact = in_pieces(tokens, content, size)
    assert np.array_equal(ids, whole.ids) and exact == whole.exact
    if content and whole.spans is not None:
        assert np.array_equal(spans, whole.spans)


@pytest.mark.parametrize("kind", LOSSLESS)
@given(content=CONTENT)
def test_any_bytes_are_restored(kind, content):
    tokens = tokens_of(kind)
    piece = tokens.encode_piece(content)
    assert tokens.lossless and piece.exact
    assert tokens.decode(piece.ids) == content
    assert piece.spans is None and int(tokens.lengths[piece.ids].sum()) == len(content)


@pytest.mark.parametrize("kind", ANY_TEXT)
@given(content=CONTENT, size=st.integers(1, 130))
def test_pieces_encode_to_the_tokens_of_the_whole(kind, content, size):
    assert_pieces_are_the_whole(tokens_of(kind), content, size)


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("kind", ANY_TEXT)
def test_pieces_of_the_hardest_texts(kind, name):
    for size in (1, 2, 3, 63, 64, 65, 1_000, 4_097):
        assert_pieces_are_the_whole(
            tokens_of(kind), ADVERSARIAL[name][:5_000] if size < 60 else ADVERSARIAL[name], size
        )


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("kind", LOSSLESS)
def test_the_hardest_texts_are_restored(kind, name):
    tokens = tokens_of(kind)
    assert tokens.decode(tokens.encode(ADVERSARIAL[name])) == ADVERSARIAL[name]


@pytest.mark.parametrize("kind", ["words", "words-spaced"])
@given(content=CONTENT)
def test_spans_of_words_hold_every_byte(kind, content):
    piece = tokens_of(kind).encode_piece(content)
    last = content[content.rfind(b"\n") + 1 :]
    white_at_the_end = len(last) - len(last.rstrip())
    assert int(piece.spans.sum()) == len(content) - white_at_the_end
    assert len(piece.ids) == len(piece.spans) and (piece.spans > 0).all()


@pytest.mark.parametrize("kind", ["words", "words-spaced"])
@given(content=CONTENT)
def test_words_say_whether_a_text_is_restored(kind, content):
    tokens = tokens_of(kind)
    piece = tokens.encode_piece(content)
    assert not tokens.lossless
    assert piece.exact == (tokens.decode(piece.ids) == content)


@pytest.mark.parametrize("kind", [*ANY_TEXT, "text8"])
def test_every_kind_states_its_start_and_survives_its_description(kind):
    tokens = tokens_of(kind)
    assert tokens.spellings[tokens.start].isspace() and 0 <= tokens.start < tokens.vocabulary
    again = kinds.read(kinds.described(tokens))
    assert type(again) is type(tokens) and again.sha256 == tokens.sha256 and again.start == tokens.start
    assert list(again.spellings) == list(tokens.spellings)
    content = b"some words of text"
    assert np.array_equal(again.encode(content), tokens.encode(content))
    assert (tokens.sha256 is None) == (tokens.learnt() is None)


def test_without_newlines():
    tokens = tokens_of("legacy-txl")
    piece = tokens.encode_piece(b"a\nb\n\nc")
    assert tokens.decode(piece.ids) == b"abc" and not piece.exact and tokens.encode_piece(b"abc").exact
    assert tokens.vocabulary == 256 and tokens.kind == "legacy-txl"


@given(st.binary())
def test_bytes_in_json(content):
    assert to_bytes(to_text(content)) == content

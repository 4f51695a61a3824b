"""What bits come to, and in what unit."""

import math

import pytest

from headcount.measure.figure import Figure, per_byte, unit_of
from headcount.text.encoding import encode
from tests.text.kinds import as_text, tokens_of


def test_bits_are_counted_over_what_is_left_and_the_unit_says_what_is_lost():
    text = as_text(b"ab\n\nc")
    assert per_byte(10.0, encode(text, tokens_of("bytes"))) == (2.0, "bits per byte")
    assert per_byte(9.0, encode(text, tokens_of("legacy-txl"))) == (3.0, "bits per byte, not lossless")
    assert per_byte(0.0, encode(as_text(b"\n"), tokens_of("legacy-txl"))) == (0.0, unit_of(False))
    assert per_byte(3.0, encode(as_text(b"abc"), tokens_of("legacy-txl"))) == (1.0, unit_of(True))


@pytest.mark.parametrize(("exact", "unit"), [(True, "bits per byte"), (False, "bits per byte, not lossless")])
def test_units(exact, unit):
    assert unit_of(exact) == unit


def figure(tokens):
    return Figure(
        value=2.0,
        unit=unit_of(tokens["exact"]),
        nats=100 * math.log(2),
        bytes=50,
        protocol={"name": "carried", "streams": 1, "segment": 512, "state": "carried", "window": None, "not_scored": 0},
        corpus={"name": "my", "split": "valid", "sha256": "b" * 64},
        tokens=tokens,
        model={"kind": "sha-rnn", "step": 30, "sha256": "c" * 64},
        command="headcount evaluate runs/my",
    )


def test_one_line_says_what_was_read_and_whether_it_can_be_restored():
    words = {"kind": "words", "vocabulary": 1_000, "scored": 25, "exact": False, "sha256": "d" * 64}
    said = str(figure(words))
    assert said.startswith("2.0000 bits per byte, not lossless · carried: 1 stream") and "\n" not in said
    assert "25 tokens (words, 1,000 symbols): perplexity 16.00; the text cannot be restored from them ·" in said
    assert "cannot be restored" not in str(figure({**words, "exact": True}))
    assert "token" not in str(figure({"kind": "bytes", "vocabulary": 256, "scored": 50, "exact": True}))


def test_what_is_only_in_the_record():
    """As docs/protocols.md says: the line leaves it out."""
    made = figure({"kind": "words", "vocabulary": 9, "scored": 25, "exact": True, "sha256": "d" * 64})
    record, said = made.to_dict(), str(made)
    for only in (record["command"], record["date"], record["tokens"]["sha256"][:12]):
        assert only and only not in said

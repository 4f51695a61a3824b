"""What bits come to, and in what unit."""

import pytest

from headcount.measure.figure import per_byte, unit_of
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

"""Spellings and names: found in a text, and measured by the probabilities that they have there."""

import math

import numpy as np
import pytest

from headcount.claims import pairs

TEXT = (
    b"They organize it. They organise it, and Organise more.\nA prize is wise; to realise is to realising.\n"
    b"They specialized in size, and we organized nothing.\n"
)


def as_text(content):
    return np.frombuffer(content, dtype=np.uint8)


def test_pairs_are_words_that_occur_in_both_spellings():
    assert pairs.find_pairs(as_text(TEXT)) == {b"organize": (1, 2)}
    assert pairs.swapped(b"Organised") == b"Organized" and pairs.swapped(b"organizations") == b"organisations"
    assert pairs.find_pairs(as_text(b"size and sise, rise and rize")) == {}  # too short to be such a word


def test_cases_come_with_their_context_from_the_beginning_of_a_line():
    text = as_text(b"one line\nThey organize it.\nThey organise it.\norganise begins a line\n")
    found = pairs.find_cases(text, {b"organize": (1, 2)})
    assert [(case.before, case.written) for case in found] == [
        (b"They ", b"organize"),
        (b"They organize it.\nThey ", b"organise"),
    ]
    for case in found:
        assert case.before + case.written + case.after in text.tobytes() and case.before.endswith(b"They ")
        assert case.other == pairs.swapped(case.written)


class Letters:
    """A model of bytes that charges 1 bit for every byte, and more for s and z inside of a word."""

    def score(self, text):
        bits = np.ones(len(text))
        for i, byte in enumerate(text):
            if byte in b"sz" and text[i - 1 : i] == b"i":
                bits[i] = 3.0 if byte == ord("s") else 1.0
        return bits


def test_stem_and_choice_add_up_to_what_the_word_costs():
    found = pairs.find_cases(as_text(b"They organise it.\n"), {b"organize": (1, 2)})
    measured = pairs.measure_spellings(Letters(), found)
    (row,) = measured["cases"]
    written, other = 9 + 2.0, 9.0  # eight letters and what ends them, two bits more for s
    assert row["written"] == "organise" and row["other"] == other
    assert row["stem"] + row["choice"] == pytest.approx(written)
    assert row["choice"] == pytest.approx(math.log2(1 + 2**2)) and measured["choice"] == row["choice"]
    assert measured["choice_error"] is None  # of one place
    nothing = pairs.measure_spellings(Letters(), [])
    assert nothing.pop("cases") == [] and set(nothing.values()) == {None} and "choice_error" in nothing


def test_the_choice_has_an_error_over_its_places():
    found = pairs.find_cases(as_text(b"They organise it, we organize it.\n"), {b"organize": (1, 2)})
    measured = pairs.measure_spellings(Letters(), found)
    one, other = (case["choice"] for case in measured["cases"])
    assert one != other and measured["choice_error"] == pytest.approx(abs(one - other) / 2)


def test_names_are_never_small_and_come_back():
    text = b"a Gandalf met Frodo; then Gandalf left. They Then Then and Once Frodo, then once Once\n"
    found = pairs.find_names(text)
    assert [(text[begin:end], before) for begin, end, before in found] == [
        (b" Gandalf", 0),
        (b" Frodo", 0),
        (b" Gandalf", 1),
        (b" Frodo", 1),
    ]
    bits = np.zeros(len(text))
    for begin, end, before in found:
        bits[begin : end + 1] = 0.5 if before else 1.0
    measured = pairs.measure_names(bits, found)
    assert measured["first"]["names"] == measured["later"]["names"] == 2
    assert measured["first"]["bits"] == 8.0 and measured["later"]["bits"] == 4.0  # 9 and 7 bytes
    assert measured["first"]["opening"] == pytest.approx(4 / 16)
    assert pairs.measure_names(bits, [])["first"]["bits"] is None

"""Conversions: from published numbers, there and back, and what breaks them on a text with known counts."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headcount.errors import RequestError
from headcount.measure import convert as module
from headcount.measure.convert import UNITS, Counts, convert, count, from_bits, total_bits
from headcount.text.words import Words

BPB = "bits-per-byte"


def array(text: bytes):
    return np.frombuffer(text, dtype=np.uint8)


@pytest.mark.parametrize(("unit", "counted"), [("bits-per-byte", "bytes"), ("bits-per-character", "characters")])
def test_lm1b_by_bytes_and_by_words(unit, counted):
    """Al-Rfou et al. 2018 on lm1b: 1.033 bits for each of Nc are a perplexity of 40.6 for each of Nw, as rounded.

    The figures and both counts are from memory, not from the paper; that they close is what is tested.
    """
    counts = Counts(words=159_658, **{counted: 826_189})
    assert round(convert(40.6, "perplexity-per-word", counts).values[unit], 3) == 1.033
    low, high = (convert(each, unit, counts).values["perplexity-per-word"] for each in (1.0325, 1.0335))
    assert low < 40.6 < high


def test_on_text8_a_character_is_a_byte():
    """T64's 1.13 bits per character of text8 are as many per byte: 27 symbols, all of them ASCII."""
    counts = count(array(b" anarchism originated as a term of abuse"))
    assert convert(1.13, "bits-per-character", counts).values["bits-per-byte"] == 1.13


@pytest.mark.parametrize(
    ("compressed", "published"),
    [
        (14_623_723, "1.170"),  # cmix v21
        (14_915_298, "1.193"),  # NNCP v3.2
        (15_905_037, "1.272"),  # tensorflow-compress
        (17_964_751, "1.437"),  # lpaq9m
        (20_500_039, "1.64"),  # NNCP's small LSTM
        (21_388_296, "1.71"),  # PPMd, variant J
    ],
)
def test_enwik8_by_the_size_of_its_archive(compressed, published):
    value = from_bits(8 * compressed, "bits-per-byte", Counts(bytes=100_000_000))
    assert f"{value:.{len(published) - 2}f}" == published


def test_wikitext_103_by_words_and_by_tokens():
    """245,569 tokens of its test part are 241,211 words and an <eos> for each of 4,358 lines: the same perplexity."""
    counts = Counts(words=241_211, lines=4_358, tokens=245_569)
    assert counts.words_and_ends == counts.tokens
    found = convert(18.3, "perplexity-per-word-with-eos", counts)
    assert found.values["perplexity-per-token"] == pytest.approx(18.3, rel=1e-12)
    (eos,) = found.conditions
    assert eos.broken == pytest.approx(18.3 ** (245_569 / 241_211), rel=1e-12) and eos.value == pytest.approx(18.3)
    assert found.bits == pytest.approx(245_569 * math.log2(18.3))


def test_newlines_of_enwik8():
    """Transformer-XL's stream has 1.13 % fewer symbols than enwik8: its 1,128,023 newlines."""
    found = convert(1.0, "bits-per-byte", Counts(bytes=100_000_000, newlines=1_128_023))
    (dropped,) = found.conditions
    assert "newlines" in dropped.name and round(100 * (1 - dropped.value / dropped.broken), 2) == 1.13
    assert dropped.per_cent == pytest.approx(100 * dropped.difference)


def test_nats_and_bits_agree():
    """One token per byte: a perplexity is e to the nats, 2 to the bits."""
    counts = Counts(bytes=1_000, tokens=1_000)
    assert convert(1.0, "bits-per-byte", counts).values["perplexity-per-token"] == 2.0
    assert convert(math.e, "perplexity-per-token", counts).values["bits-per-byte"] == pytest.approx(1 / math.log(2))


COUNTS = st.builds(
    lambda parts, tokens: Counts(
        lines=parts[0], words=parts[1], characters=parts[2], bytes=parts[3], tokens=tokens, newlines=0, unknown=0
    ),
    st.tuples(*[st.integers(1, 10**9)] * 4).map(sorted),
    st.integers(1, 10**9),
)


@given(st.sampled_from(list(UNITS)), st.sampled_from(list(UNITS)), st.floats(0.0, 8.0), COUNTS)
def test_there_and_back(one, other, bits_each, counts):
    value = 2**bits_each if UNITS[one].perplexity else bits_each
    there = convert(value, one, counts).values[other]
    # Not beyond what a number holds, and not with all its digits behind the one.
    assume(math.isfinite(there) and not (UNITS[other].perplexity and there < 1 + 1e-6))
    assert total_bits(there, other, counts) == pytest.approx(total_bits(value, one, counts), rel=1e-6, abs=1e-6)
    assert convert(there, other, counts).values[one] == pytest.approx(value, rel=1e-6)


MADE = "Größe <unk> ist\n\n<unk>s  x<unk> <unk>\n".encode() + b"\xff\xfe end"


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
def test_counts_of_a_made_text(monkeypatch, piece):
    monkeypatch.setattr(module, "SLICE", piece)
    found = count(array(MADE), tokens=5)
    assert found == Counts(bytes=len(MADE), characters=len(MADE) - 2, words=8, lines=3, newlines=3, unknown=2, tokens=5)


@given(st.text(alphabet="ab \n\té€<unk>", min_size=1), st.integers(1, 9))
def test_counts_agree_with_python(text, piece):
    data = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SLICE", piece)
        found = count(array(data))
    assert (found.characters, found.words or 0) == (len(text), len(data.split()))
    assert found.lines == found.newlines == data.count(b"\n")
    assert (found.unknown or 0) == data.split().count(b"<unk>")


@pytest.mark.parametrize("whole", [b"the cat sat\n\non a mat\n", b" \n = The cat = \n \n on <unk> \n"])
def test_words_and_ends_are_the_tokens_of_a_word_model_wherever_a_text_is_cut(whole):
    """A figure and what it is converted to divide by the same number, also if the last line has no end."""
    words = Words.learn(array(whole), None)
    for length in range(1, len(whole) + 1):
        found, ids = count(array(whole[:length])), words.encode_piece(whole[:length]).ids
        assert (found.words or 0) + found.lines == len(ids), whole[:length]
    one = count(array(b"a few words"))
    assert (one.lines, one.words_and_ends) == (0, 3) and "perplexity-per-word-with-eos" in convert(1, BPB, one).values


def test_a_text_without_words_is_converted_all_the_same():
    found = convert(2.0, "bits-per-byte", count(array("\u2003 \n".encode())))  # an em space is no ASCII one
    assert found.counts.words == 1
    blank = convert(2.0, "bits-per-byte", count(array(b" \n ")))
    assert blank.values == {"bits-per-byte": 2.0, "bits-per-character": 2.0}


MEMORY = """
import sys
from pathlib import Path
from headcount.measure.convert import count
from headcount.text.corpora import export, open_corpus, map_file
from headcount.tables import CorpusTable
file, what = Path(sys.argv[1]), sys.argv[2]
if what == "count":
    count(map_file(file))
else:
    export(open_corpus(CorpusTable(path=str(file))), file.parent / "out")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says how much it was")
@pytest.mark.parametrize("what", ["count", "export"])
def test_memory_does_not_grow_with_the_text(tmp_path, what):
    """Bytes that were looked at are given back: 64 MB take little more than 1 MB does."""
    most = []
    for size in (1 << 20, 1 << 26):
        (tmp_path / "my.txt").write_bytes(b"a line of <unk> words\n" * (size // 22))
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, tmp_path / "my.txt", what], capture_output=True, check=True
        )
        most.append(int(done.stdout) / 1024)
    assert most[1] - most[0] < 24


def test_what_is_broken_and_by_how_much():
    """Eight words on four lines, two of them <unk>, in 40 bytes that are 38 characters and three newlines."""
    counts = Counts(bytes=40, characters=38, words=8, lines=4, newlines=3, unknown=2)
    found = convert(1.2, "bits-per-byte", counts)  # 48 bits
    eos, unknown, newlines, characters = found.conditions
    assert (eos.value, eos.broken, eos.difference, eos.per_cent) == pytest.approx((16, 64, 48, 300))
    assert (unknown.value, unknown.broken) == pytest.approx((16, 2**4.8))
    assert (newlines.value, newlines.broken) == pytest.approx((1.2, 48 / 37))
    assert (characters.broken, characters.per_cent) == pytest.approx((48 / 38, 100 * 2 / 38))


def test_what_cannot_be_broken_is_not_listed():
    assert convert(1.0, "bits-per-byte", Counts(bytes=10, characters=10, newlines=0)).conditions == ()
    assert convert(0.0, "bits-per-byte", Counts(bytes=10, newlines=1)).conditions[0].per_cent == 0
    huge = convert(8.0, "bits-per-byte", Counts(bytes=10_000, words=2, lines=1))
    assert huge.values["perplexity-per-word"] == math.inf and huge.conditions == ()


@pytest.mark.parametrize(
    ("value", "unit", "counts", "says"),
    [
        (0.5, "perplexity-per-word", {"words": 3}, "from 1 on"),
        (-1.0, "bits-per-byte", {"bytes": 3}, "from 0 on"),
        (math.nan, "bits-per-byte", {"bytes": 3}, "from 0 on"),
        (math.inf, "perplexity-per-token", {"tokens": 3}, "from 1 on"),
        (1.0, "bits-per-bite", {"bytes": 3}, "did you mean"),
        (2.0, "perplexity-per-word-with-eos", {"words": 3}, "words and of lines"),
        (1.0, "bits-per-byte", {"bytes": 0}, "from 1 on"),
        (1.0, "bits-per-byte", {"bytes": 3, "newlines": -1}, "from 0 on"),
        (1.0, "bits-per-byte", {"bytes": 3, "characters": 4}, "cannot be so many"),
        (2.0, "perplexity-per-word", {"words": 3, "unknown": 4}, "cannot be so many"),
        (1.0, "bits-per-byte", {"bytes": 10, "lines": 30}, "30 lines in 10 bytes: there cannot be so many"),
        (1.0, "bits-per-byte", {"bytes": 99, "characters": 10, "newlines": 11}, "cannot be so many"),
        (2.0, "perplexity-per-word-with-eos", {"words": 3, "lines": -1}, "from 0 on"),
    ],
)
def test_bad_values_are_refused(value, unit, counts, says):
    with pytest.raises(RequestError, match=says):
        convert(value, unit, Counts(**counts))

"""A mapped text is walked through without keeping its pages, and cut where it falls apart."""

import hashlib
import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.text import mapped
from tests.text.kinds import as_text


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "text"
    path.write_bytes(np.random.default_rng(0).bytes(8_000_000))
    return path


def resident(array) -> int:
    """Bytes of the array's pages that are in this process's page tables."""
    low, high = np.lib.array_utils.byte_bounds(array)
    inside, found = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            begin, end = (int(place, 16) for place in first.split("-"))
            inside = begin < high and low < end
        elif inside and line.startswith("Rss:"):
            found += int(rest.split()[0]) * 1024
    return found


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="this system takes no advice")
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells")
def test_pages_are_given_back(file):
    text = np.memmap(file, dtype=np.uint8, mode="r")[1_000:-1_000]
    assert text.sum() > 0 and resident(text) > 7_000_000
    mapped.give_back(text)
    assert resident(text) < 500_000
    assert mapped.sha256(text) == hashlib.sha256(file.read_bytes()[1_000:-1_000]).hexdigest()
    assert resident(text) < 500_000
    columns = np.memmap(file, dtype=np.uint32, mode="r").reshape(-1, 2)[:, 0]
    assert columns.sum() > 0 and resident(columns) > 7_000_000
    mapped.give_back(columns)
    assert resident(columns) < 500_000


def test_a_stretch_is_a_copy_and_what_is_not_mapped_is_left_alone(file):
    text = np.memmap(file, dtype=np.uint8, mode="r")
    assert mapped.stretch(text, 5_000, 9_000) == file.read_bytes()[5_000:9_000]
    assert mapped.stretch(text, 7_999_990, 9_000_000) == file.read_bytes()[-10:]
    assert mapped.stretch(as_text(b"abc"), 1, 3) == b"bc" and mapped.stretch(as_text(b""), 0, 0) == b""
    assert mapped.sha256(as_text(b"")) == hashlib.sha256(b"").hexdigest()


def after_x(text):
    return text[:-1] == ord("x")


@given(st.lists(st.sampled_from(b"abx"), min_size=2, max_size=60).map(bytes), st.data(), st.integers(1, 9))
def test_the_last_cut_and_the_next_one(content, data, near):
    place = data.draw(st.integers(1, len(content) - 1))
    begin = data.draw(st.integers(0, place - 1))
    places = [i for i in range(1, len(content)) if content[i - 1] == ord("x")]
    before, mapped.NEAR = mapped.NEAR, near
    try:
        found = mapped.last_cut(as_text(content), begin, place, after_x)
        assert found == max((i for i in places if begin < i <= place), default=None)
        assert mapped.next_cut(as_text(content), place, after_x) == min(
            (i for i in places if i > place), default=len(content)
        )
    finally:
        mapped.NEAR = before


def test_stretches_are_the_whole():
    text = as_text(b"abcdefghij")
    assert list(mapped.stretches(text, 4, lambda text, begin, place: place)) == [(0, 4), (4, 8), (8, 10)]
    assert list(mapped.stretches(text, 4, lambda text, begin, place: begin + 3)) == [(0, 3), (3, 6), (6, 10)]
    assert list(mapped.stretches(text[:0], 4, lambda text, begin, place: place)) == []

"""Downloads: resumed where they broke off, begun anew when the file changed, never used unverified."""

import hashlib
import random

import pytest

from headcount.errors import DataError, RequestError
from headcount.text import download
from headcount.text.cache import cache_folder
from tests.faults.server import Behaviour, serving

CHUNK = download.CHUNK
CONTENT = random.Random(0).randbytes(9 * CHUNK)
HASH = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def fetch(behaviour: Behaviour, known=HASH):
    with serving(behaviour) as address:
        return download.fetch(f"{address}/the.zip", "the corpus", known)


def there() -> list[str]:
    return sorted(file.name for file in (cache_folder() / "fetched").iterdir())


def test_a_whole_download_leaves_one_file():
    file = fetch(Behaviour(CONTENT))
    assert file.read_bytes() == CONTENT and file == cache_folder() / "fetched" / "the.zip"
    assert there() == ["the.zip"]
    asked = Behaviour(CONTENT)
    assert fetch(asked).read_bytes() == CONTENT and not asked.asked  # it is there


def test_a_download_that_breaks_off_goes_on_where_it_stopped():
    how = Behaviour(CONTENT, cut=[3 * CHUNK, 2 * CHUNK])
    assert fetch(how).read_bytes() == CONTENT
    assert how.asked[0] is None and how.asked[1] == f"bytes={3 * CHUNK}-" and how.asked[2] == f"bytes={5 * CHUNK}-"
    assert there() == ["the.zip"]


def test_a_later_process_goes_on_too(monkeypatch):
    how = Behaviour(CONTENT, cut=[3 * CHUNK])
    with serving(how) as address:
        url = f"{address}/the.zip"
        with monkeypatch.context() as broken:
            broken.setattr(download, "_size", lambda part: 0)  # as if the first try were the last
            with pytest.raises(RequestError, match="cannot download the corpus"):
                download.fetch(url, "the corpus", HASH)
        assert there() == ["the.zip.part", "the.zip.part.json"]
        assert download.fetch(url, "the corpus", HASH).read_bytes() == CONTENT
    assert how.asked == [None, f"bytes={3 * CHUNK}-"] and there() == ["the.zip"]


@pytest.mark.parametrize(
    "second",
    [Behaviour(CONTENT, tag='"two"'), Behaviour(CONTENT, ranges=False), Behaviour(CONTENT, tag="", changed="")],
    ids=["it changed", "no ranges", "no validator"],
)
def test_what_cannot_go_on_begins_anew(second):
    first = Behaviour(b"x" * 3 * CHUNK + CONTENT, cut=[3 * CHUNK])
    with serving(first) as address:
        url = f"{address}/the.zip"
        part = cache_folder() / "fetched" / "the.zip.part"
        part.parent.mkdir()
        with pytest.raises(OSError):
            download._receive(url, part)
        assert part.stat().st_size == 3 * CHUNK
        vars(first).update(vars(second))
        assert download.fetch(url, "the corpus", HASH).read_bytes() == CONTENT


def test_a_weak_tag_is_no_validator():
    how = Behaviour(CONTENT, tag='W/"one"', cut=[3 * CHUNK])
    assert fetch(how).read_bytes() == CONTENT and how.asked == [None, None]


@pytest.mark.parametrize(
    "how",
    [
        Behaviour(CONTENT[:-1] + b"!"),
        Behaviour(CONTENT[: 6 * CHUNK]),
        Behaviour(CONTENT, length=False, always_cut=6 * CHUNK),
        Behaviour(b""),
    ],
    ids=["swapped", "short", "cut, no length", "empty"],
)
def test_what_has_another_hash_is_thrown_away(how):
    with pytest.raises(DataError, match="is not the corpus, and was thrown away"):
        fetch(how)
    assert there() == []


def test_a_part_of_another_file_is_found_out():
    how = Behaviour(CONTENT, cut=[3 * CHUNK])
    with serving(how) as address:
        part = cache_folder() / "fetched" / "the.zip.part"
        part.parent.mkdir()
        with pytest.raises(OSError):
            download._receive(f"{address}/the.zip", part)
        part.write_bytes(b"y" * 3 * CHUNK)
        with pytest.raises(DataError, match="thrown away"):
            download.fetch(f"{address}/the.zip", "the corpus", HASH)
        assert download.fetch(f"{address}/the.zip", "the corpus", HASH).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "how",
    [
        Behaviour(status=404),
        Behaviour(status=500),
        Behaviour(status=302, location="file:///etc/passwd"),
        Behaviour(status=302, location="/the.zip"),
        Behaviour(CONTENT, always_cut=3 * CHUNK, ranges=False),
        Behaviour(CONTENT, cut=[3 * CHUNK], shifted=7),
    ],
    ids=["404", "500", "to a file", "in circles", "always cut", "another part"],
)
def test_what_the_server_refuses_is_a_sentence_that_says_where_to_put_the_file(how):
    if how.shifted:
        with serving(how) as address:
            part = cache_folder() / "fetched" / "the.zip.part"
            part.parent.mkdir()
            with pytest.raises(OSError):
                download._receive(f"{address}/the.zip", part)
            with pytest.raises(OSError, match="another part"):
                download._receive(f"{address}/the.zip", part)
        assert not part.exists()
        return
    with pytest.raises(RequestError, match=r"put the file at .*the\.zip, or name it"):
        fetch(how)


def test_a_server_that_stalls_is_given_up(monkeypatch):
    monkeypatch.setattr(download, "SECONDS_WITHOUT_A_BYTE", 0.1)
    how = Behaviour(CONTENT, stall=0.5, ranges=False)
    with pytest.raises(RequestError, match="cannot download"):
        fetch(how)


def test_a_body_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(download, "MOST_BYTES", 100_000)
    with pytest.raises(RequestError, match="given up"):
        fetch(Behaviour(CONTENT, length=False))

"""Published files: verified by hash wherever they come from."""

import gzip
import hashlib
import zipfile
from pathlib import Path

import pooch
import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import published
from headcount.text.cache import cache_folder
from headcount.text.corpora import open_corpus
from headcount.text.published import Published


def test_hashes_are_those_that_were_published():
    """enwik8's by hand over the file, enwik9's as many have it, text8's as the issue has it."""
    known = {
        "enwik8": "a1fa5ffddb56f4953e226637dabbb36a",
        "enwik9": "e206c3450ac99950df65bf70ef61a12d",
        "text8": "3bea1919949baf155f99411df5fada7e",
    }
    assert {name: file.md5 for name, file in published.FILES.items()} == known
    assert {file.url for file in published.FILES.values()} == {f"https://mattmahoney.net/dc/{n}.zip" for n in known}


@pytest.fixture
def small_enwik8(monkeypatch):
    content = b"<mediawiki>" * 500
    monkeypatch.setitem(
        published.FILES, "enwik8", Published("https://nowhere/enwik8.zip", hashlib.md5(content).hexdigest())
    )
    return content


def pack(content: bytes, path: Path) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("enwik8", content)
    else:
        path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["enwik8", "enwik8.gz", "enwik8.zip"])
def test_enwik8_from_a_file(tmp_path, small_enwik8, name):
    path = pack(small_enwik8, tmp_path / name)
    corpus = open_corpus(CorpusTable(name="enwik8", path=str(path)))
    assert corpus.file.read_bytes() == small_enwik8 and corpus.name == "enwik8"
    if name != "enwik8":
        assert open_corpus(CorpusTable(name="enwik8")).file.read_bytes() == small_enwik8  # now it is in the cache


@pytest.mark.parametrize("name", ["enwik8", "enwik8.gz", "enwik8.zip"])
def test_enwik8_that_is_something_else_or_torn_is_never_used(tmp_path, small_enwik8, name):
    path = pack(small_enwik8 + b"!", tmp_path / name)
    with pytest.raises(DataError, match="md5"):
        open_corpus(CorpusTable(name="enwik8", path=str(path)))
    if name != "enwik8":
        path.write_bytes(pack(small_enwik8, tmp_path / name).read_bytes()[:-12])
        with pytest.raises(DataError):
            open_corpus(CorpusTable(name="enwik8", path=str(path)))
    assert not any(p.name.endswith("enwik8") and not p.name.startswith(".lock") for p in cache_folder().iterdir())


def test_enwik8_is_downloaded_and_verified(tmp_path, small_enwik8, monkeypatch):
    fetched = pack(small_enwik8, tmp_path / "enwik8.zip")
    monkeypatch.setattr(pooch, "retrieve", lambda url, **_: str(fetched))
    assert open_corpus(CorpusTable(name="enwik8")).file.read_bytes() == small_enwik8


def test_a_damaged_download_is_fetched_again(tmp_path, small_enwik8, monkeypatch):
    fetched = tmp_path / "enwik8.zip"
    fetched.write_bytes(b"junk")
    monkeypatch.setattr(pooch, "retrieve", lambda url, **_: str(fetched))
    with pytest.raises(DataError):
        open_corpus(CorpusTable(name="enwik8"))
    assert not fetched.exists()


def test_without_a_network_the_sentence_says_where_to_put_the_file(monkeypatch):
    def offline(url, **_):
        raise ConnectionError("no route")

    monkeypatch.setattr(pooch, "retrieve", offline)
    with pytest.raises(RequestError, match=r"put the file at .*enwik8\.zip, or name it: corpus\.path of a recipe"):
        open_corpus(CorpusTable(name="enwik8"))


def test_an_enwik8_in_the_cache_that_is_damaged_is_not_used(small_enwik8, monkeypatch):
    (cache_folder() / "enwik8").write_bytes(b"x")
    with pytest.raises(RequestError, match="cannot download"):
        monkeypatch.setattr(pooch, "retrieve", lambda url, **_: (_ for _ in ()).throw(OSError()))
        open_corpus(CorpusTable(name="enwik8"))


def test_one_file_is_wanted(tmp_path, small_enwik8):
    with pytest.raises(RequestError, match="is one file"):
        published.find("enwik8", ["a", "b"])
    with pytest.raises(RequestError, match="no such file"):
        published.find("enwik8", [str(tmp_path / "nowhere.gz")])


def test_a_file_that_is_named_is_verified_whatever_the_cache_holds(tmp_path, small_enwik8, monkeypatch):
    path = pack(small_enwik8, tmp_path / "enwik8.gz")
    kept = published.find("enwik8", [str(path)])
    with pytest.raises(DataError, match="does not hold enwik8"):
        published.find("enwik8", [str(pack(b"garbage", tmp_path / "bad.gz"))])
    monkeypatch.setattr(published, "_unpack", lambda *_: pytest.fail("it was unpacked twice"))
    assert published.find("enwik8", [str(path)]) == kept


def test_enwik9_is_another_file_of_the_same_kind(tmp_path, small_enwik8):
    path = pack(small_enwik8, tmp_path / "enwik9.gz")
    with pytest.raises(DataError, match="does not hold enwik9"):
        open_corpus(CorpusTable(name="enwik9", path=str(path)))

"""Corpora: found, joined, verified, split, never read whole."""

import gzip
import hashlib
import io
import sysconfig
import zipfile
from pathlib import Path

import numpy as np
import pooch
import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import corpora
from headcount.text.corpora import open_corpus


def test_stdlib_is_the_sources_sorted_without_tests_and_packages(tmp_path, monkeypatch):
    for name in ("b.py", "a/x.py", "a.py", "test/t.py", "site-packages/s.py", "a/tests/t.py", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name * 100)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    corpus = open_corpus(CorpusTable())
    expected = "".join(name * 100 for name in ("a.py", "a/x.py", "b.py")).encode()
    assert corpus.file.read_bytes() == expected and corpus.sha256 == hashlib.sha256(expected).hexdigest()
    assert corpus.name == "stdlib" and corpora.cache_folder() in corpus.file.parents
    made = corpus.file.stat().st_mtime_ns
    assert open_corpus(CorpusTable()).file.stat().st_mtime_ns == made  # joined once
    corpus.file.write_bytes(b"damaged")
    assert open_corpus(CorpusTable()).file.read_bytes() == expected  # and again if the cache is damaged
    (tmp_path / "a.py").write_text("changed")
    assert open_corpus(CorpusTable()).sha256 != corpus.sha256
    assert open_corpus(CorpusTable(sha256=corpus.sha256)).file.read_bytes() == expected  # an older Python's, by hash


def test_the_real_stdlib_is_text():
    data = open_corpus(CorpusTable()).split("train")
    assert len(data) > 5_000_000 and b"def " in data[:100_000].tobytes()


def test_splits_are_slices_of_one_map(text_file):
    corpus = open_corpus(CorpusTable(path=str(text_file)))
    parts = [corpus.split(name) for name in corpora.SPLITS]
    assert [len(part) for part in parts] == [18_000, 1_000, 1_000]
    assert np.concatenate(parts).tobytes() == text_file.read_bytes()
    assert all(isinstance(part, np.memmap) for part in parts)
    two = open_corpus(CorpusTable(path=str(text_file), split=(0.75, 0.25)))
    assert len(two.split("valid")) == 5_000
    with pytest.raises(RequestError, match="no test split"):
        two.split("test")
    with pytest.raises(RequestError, match="did you mean 'valid'"):
        two.split("vaild")


def test_several_files_are_joined_in_the_order_given(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 500)
    corpus = open_corpus(CorpusTable(path=(str(tmp_path / "two"), str(tmp_path / "one"))))
    assert corpus.file.read_bytes() == b"two" * 500 + b"one" * 500
    assert corpus.name == "text"


def test_a_hash_that_does_not_fit_is_refused(text_file):
    with pytest.raises(RequestError, match="has changed"):
        open_corpus(CorpusTable(path=str(text_file), sha256="0" * 64))


def test_names_and_paths_that_are_not_there(tmp_path):
    with pytest.raises(RequestError, match="did you mean 'enwik8'"):
        open_corpus(CorpusTable(name="enwik"))
    with pytest.raises(RequestError, match="nowhere"):
        open_corpus(CorpusTable(path=str(tmp_path / "nowhere.txt")))
    with pytest.raises(RequestError, match="is a folder"):
        open_corpus(CorpusTable(path=str(tmp_path)))


def test_piped_text_is_kept_by_its_hash():
    kept = corpora.keep_piped(io.BytesIO(b"some text"))
    assert kept.read_bytes() == b"some text" and kept.stem == hashlib.sha256(b"some text").hexdigest()


@pytest.fixture
def small_enwik8(monkeypatch):
    content = b"<mediawiki>" * 500
    monkeypatch.setattr(corpora, "ENWIK8_MD5", hashlib.md5(content).hexdigest())
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
    assert not any("enwik8" in p.name for p in corpora.cache_folder().iterdir())


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
    with pytest.raises(RequestError, match=r"put the file at .*enwik8, or name it with corpus\.path"):
        open_corpus(CorpusTable(name="enwik8"))


def test_an_enwik8_in_the_cache_that_is_damaged_is_not_used(small_enwik8, monkeypatch):
    (corpora.cache_folder() / "enwik8").write_bytes(b"x")
    with pytest.raises(RequestError, match="cannot download"):
        monkeypatch.setattr(pooch, "retrieve", lambda url, **_: (_ for _ in ()).throw(OSError()))
        open_corpus(CorpusTable(name="enwik8"))

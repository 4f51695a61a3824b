"""Corpora: found, joined, verified, split, never read whole."""

import hashlib
import json
import sysconfig

import numpy as np
import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import corpora, prepared
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


def test_a_hash_that_does_not_fit_is_refused(text_file):
    with pytest.raises(RequestError, match="has changed"):
        open_corpus(CorpusTable(path=str(text_file), sha256="0" * 64))


def test_names_and_paths_that_are_not_there(tmp_path):
    with pytest.raises(RequestError, match="did you mean 'enwik8'"):
        open_corpus(CorpusTable(name="enwiki8"))
    with pytest.raises(RequestError, match="nowhere"):
        open_corpus(CorpusTable(path=str(tmp_path / "nowhere.txt")))
    with pytest.raises(RequestError, match="is a folder without texts"):
        open_corpus(CorpusTable(path=str(tmp_path)))


@pytest.fixture
def parted(tmp_path):
    file = tmp_path / "made"
    parts = {"train": b"t" * 3_000, "valid": b"v" * 200, "test": b"e" * 100}
    prepared.write(file, {name: ([content], {"words": 1}) for name, content in parts.items()}, {"corpus": "wikipedia"})
    return file


def test_a_corpus_with_parts_of_its_own(parted):
    corpus = open_corpus(CorpusTable(name="wikipedia", path=str(parted)))
    assert corpus.ends == (3_000, 3_200, 3_300) and corpus.shares is None
    assert corpus.split("valid").tobytes() == b"v" * 200 and corpus.split("test").tobytes() == b"e" * 100
    with pytest.raises(RequestError, match="of its own"):
        open_corpus(CorpusTable(name="wikipedia", path=str(parted), split=(0.9, 0.1)))


def test_a_prepared_corpus_that_is_damaged_is_refused(parted):
    parted.write_bytes(b"!" + parted.read_bytes()[1:])
    with pytest.raises(DataError, match="its manifest says"):
        open_corpus(CorpusTable(name="wikipedia", path=str(parted)))


def test_what_was_exported_is_the_corpus_again_once_its_hash_is_right(parted, text_file, tmp_path, monkeypatch):
    there = open_corpus(CorpusTable(name="wikipedia", path=str(parted)))
    folder = tmp_path / "out"
    corpora.export(there, folder)
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "elsewhere"))
    table = CorpusTable(name="wikipedia", path=str(folder))
    for _ in range(2):
        here = open_corpus(table)
        assert (here.sha256, here.ends, here.shares) == (there.sha256, there.ends, None)
    assert here.manifest() == there.manifest() and prepared.is_whole(here.file)
    moved = b"".join((folder / f"{split}.txt").read_bytes() for split in ("train", "valid"))
    (folder / "train.txt").write_bytes(moved)  # the same bytes in all, and other parts
    (folder / "valid.txt").write_bytes(b"")
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "a third"))
    with pytest.raises(DataError, match=r"out is damaged: its parts are not those that its manifest.json is about"):
        open_corpus(table)
    assert not [p for p in (tmp_path / "a third").iterdir() if p.is_file()]
    (folder / "test.txt").unlink()
    with pytest.raises(RequestError, match=r"test.txt: No such file"):
        open_corpus(table)
    listed = json.loads((folder / "manifest.json").read_text())
    for wrong, error in (({"sha256": "../x"}, DataError), ({"parts": {}}, DataError), ({"corpus": "x"}, RequestError)):
        (folder / "manifest.json").write_text(json.dumps({**listed, **wrong}))
        with pytest.raises(error):
            open_corpus(table)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        open_corpus(table)
    (folder / "manifest.json").unlink()
    with pytest.raises(RequestError, match=r"is a folder without a manifest.json"):
        open_corpus(table)


def test_export_writes_the_parts_and_a_manifest(parted, text_file, tmp_path):
    corpora.export(open_corpus(CorpusTable(name="wikipedia", path=str(parted))), tmp_path / "out")
    assert (tmp_path / "out" / "valid.txt").read_bytes() == b"v" * 200
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["parts"]["train"] == {"bytes": 3_000, "words": 1}
    plain = open_corpus(CorpusTable(path=str(text_file), split=(0.75, 0.25)))
    corpora.export(plain, tmp_path / "two")
    assert sorted(p.name for p in (tmp_path / "two").iterdir()) == ["manifest.json", "train.txt", "valid.txt"]
    assert plain.manifest()["parts"] == {"train": {"bytes": 15_000}, "valid": {"bytes": 5_000}}
    prepared.write(parted, {"train": ([b"t" * 9], {}), "valid": ([], {}), "test": ([], {})}, {"corpus": "wikipedia"})
    corpora.export(open_corpus(CorpusTable(name="wikipedia", path=str(parted))), tmp_path / "empty")
    assert [(tmp_path / "empty" / f"{split}.txt").read_bytes() for split in corpora.SPLITS] == [b"t" * 9, b"", b""]
    with pytest.raises(RequestError, match="cannot write"):
        corpora.export(plain, text_file / "below a file")

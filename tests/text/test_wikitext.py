"""WikiText: three verified parts, joined, from wherever they lie."""

import gzip
import hashlib
import zipfile

import pooch
import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import prepared, wikitext
from headcount.text.corpora import open_corpus
from headcount.text.wikitext import Form
from tests.conftest import make_text

PARTS = {
    "train": b" = A title = \n \n" + make_text(4_000) + b" <unk> \n",
    "valid": b" \n a <unk> of words \n",
    "test": b" the last \xc3\xa9 \n",
}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    sha1 = tuple(hashlib.sha1(content).hexdigest() for content in PARTS.values())
    for name, ending in (("wikitext-2", "tokens"), ("wikitext-2-raw", "raw")):
        monkeypatch.setitem(wikitext.FORMS, name, Form(f"{name}-v1.zip", "0" * 64, ending, sha1))


def lay(folder, how, ending="tokens"):
    """The three files in a folder: plain, packed, or in the published zip."""
    folder.mkdir(exist_ok=True)
    if how == "zip":
        with zipfile.ZipFile(folder / "w.zip", "w") as archive:
            archive.writestr("wikitext-2/", b"")
            for split, content in PARTS.items():
                archive.writestr(f"wikitext-2/wiki.{split}.{ending}", content)
        return folder / "w.zip"
    for split, content in PARTS.items():
        file = folder / f"wiki.{split}.{ending}{'.gz' if how == 'gz' else ''}"
        file.write_bytes(gzip.compress(content) if how == "gz" else content)
    return folder


@pytest.mark.parametrize("how", ["plain", "gz", "zip"])
@pytest.mark.parametrize(("name", "ending"), [("wikitext-2", "tokens"), ("wikitext-2-raw", "raw")])
def test_from_local_files(tmp_path, how, name, ending):
    place = lay(tmp_path / "w", how, ending)
    corpus = open_corpus(CorpusTable(name=name, path=str(place)))
    assert {split: corpus.split(split).tobytes() for split in PARTS} == PARTS
    parts = corpus.manifest()["parts"]
    assert parts["valid"] == {"bytes": 21, "lines": 2, "words": 4} and parts["test"]["words"] == 3
    assert parts["train"]["words"] == len(PARTS["train"].split())
    assert open_corpus(CorpusTable(name=name)).file == corpus.file  # from now on it is in the cache


def test_words_are_counted_across_chunks(monkeypatch):
    counts = {}
    content = b" one two  three\nfour "
    pieces = iter([content[i : i + 1] for i in range(len(content))])
    read = b"".join(prepared.counted(pieces, counts))
    assert read == content and counts == {"lines": 1, "words": 4}


def test_three_paths(tmp_path):
    lay(tmp_path / "w", "plain")
    paths = tuple(str(tmp_path / "w" / f"wiki.{split}.tokens") for split in ("test", "train", "valid"))
    assert open_corpus(CorpusTable(name="wikitext-2", path=paths)).split("test").tobytes() == PARTS["test"]


def test_another_text_is_never_used(tmp_path):
    place = lay(tmp_path / "w", "plain")
    (place / "wiki.valid.tokens").write_bytes(b"something else")
    with pytest.raises(DataError, match="the valid part is not the published one"):
        wikitext.find("wikitext-2", [str(place)])
    assert not wikitext.is_ready("wikitext-2")
    (place / "wiki.valid.tokens").unlink()
    with pytest.raises(RequestError, match=r"there is no wiki\.valid\.tokens"):
        wikitext.find("wikitext-2", [str(place)])
    with pytest.raises(RequestError, match="no such file"):
        wikitext.find("wikitext-2", [str(tmp_path / "nowhere")])


@pytest.mark.parametrize("how", ["plain", "gz", "zip"])
def test_a_path_is_verified_also_where_the_corpus_is_in_the_cache_already(tmp_path, monkeypatch, how):
    file = wikitext.find("wikitext-2", [str(lay(tmp_path / "w", "plain"))])
    made = file.stat().st_mtime_ns
    assert wikitext.find("wikitext-2", [str(lay(tmp_path / "same", how))]) == file
    monkeypatch.setitem(PARTS, "test", b"something else")
    with pytest.raises(DataError, match="the test part is not the published one"):
        wikitext.find("wikitext-2", [str(lay(tmp_path / "other", how))])
    (tmp_path / "empty").mkdir()
    with pytest.raises(RequestError, match=r"there is no wiki\.train\.tokens"):
        wikitext.find("wikitext-2", [str(tmp_path / "empty")])
    assert wikitext.find("wikitext-2", ()) == file and file.stat().st_mtime_ns == made


def test_downloaded_by_its_hash(tmp_path, monkeypatch):
    place, asked = lay(tmp_path / "w", "zip"), []
    monkeypatch.setattr(pooch, "retrieve", lambda url, **how: asked.append((url, how["known_hash"])) or str(place))
    assert open_corpus(CorpusTable(name="wikitext-2")).split("train").tobytes() == PARTS["train"]
    assert asked == [("https://wikitext.smerity.com/wikitext-2-v1.zip", "sha256:" + "0" * 64)]


def test_a_damaged_cache_is_made_again(tmp_path):
    place = lay(tmp_path / "w", "plain")
    file = wikitext.find("wikitext-2", [str(place)])
    file.write_bytes(b"damaged")
    assert not prepared.is_whole(file)
    assert wikitext.find("wikitext-2", [str(place)]).read_bytes() == b"".join(PARTS.values())

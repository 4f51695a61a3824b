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

REAL = dict(wikitext.FORMS)
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


def test_a_folder_with_the_published_zip_is_looked_into(tmp_path):
    lay(tmp_path / "w", "zip").rename(tmp_path / "w" / "wikitext-2-v1.zip")
    (tmp_path / "w" / "another.zip").write_bytes(b"not even an archive")
    assert open_corpus(CorpusTable(name="wikitext-2", path=str(tmp_path))).split("test").tobytes() == PARTS["test"]
    with pytest.raises(RequestError, match=r"there is no wiki\.train\.raw"):
        wikitext.find("wikitext-2-raw", [str(tmp_path)])  # the zip of another form is not that one


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


def test_hashes_are_those_that_others_have_too():
    """sha1 of the parts as GluonNLP has them, sha256 of the zips as mlx-data; wikitext-2 was hashed by hand as well."""
    parts = {
        "wikitext-2": "863f29c46ef9d167fff4940ec821195882fe29d1 0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422 "
        "c7b8ce0aa086fb34dab808c5c49224211eb2b172",
        "wikitext-2-raw": "d33faf256327882db0edc7c67cd098d1051a2112 db78d4db83700cba1b1bf4a9381087043db2876d "
        "6f1fe2054a940eebfc76b284b09680763b37f5ea",
        "wikitext-103": "b7497e2dfe77e72cfef5e3dbc61b7b53712ac211 c326ac59dc587676d58c422eb8a03e119582f92b "
        "8a5befc548865cec54ed4273cf87dbbad60d1e47",
        "wikitext-103-raw": "3d06627c15e834408cfee91293f862c11c1cc9ef db78d4db83700cba1b1bf4a9381087043db2876d "
        "6f1fe2054a940eebfc76b284b09680763b37f5ea",
    }
    zips = {
        "wikitext-2": "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
        "wikitext-2-raw": "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",
        "wikitext-103": "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
        "wikitext-103-raw": "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794",
    }
    assert {name: " ".join(form.sha1) for name, form in REAL.items()} == parts
    assert {name: form.sha256 for name, form in REAL.items()} == zips
    for name, form in REAL.items():
        assert (form.zip, form.ending) == (f"{name}-v1.zip", "raw" if name.endswith("raw") else "tokens")
    assert wikitext.ADDRESS == "https://wikitext.smerity.com"

"""Evergreen WikiText: stable parts, the same bytes from the same dump, a build that goes on where it was stopped."""

import bz2
import gzip
import json

import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import prepared, wikipedia
from headcount.text.cache import cache_folder
from headcount.text.corpora import open_corpus
from tests.text.dump_maker import dump, page

TITLES = [f"Article {i}" for i in range(120)]
PAGES = [page(title, f"'''{title}''' is [[one|the {title}]].\n== Empty ==\n") for title in TITLES]
PAGES[30:30] = [page("R", "#REDIRECT [[X]]", redirect=True), page("Talk:X", "chat", ns=1)]


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "wiki.xml.bz2"
    path.write_bytes(bz2.compress(dump(*PAGES).encode()))
    return path


def test_where_an_article_goes_depends_on_its_title_alone(packed, tmp_path):
    file = wikipedia.build(packed)
    corpus = open_corpus(CorpusTable(name="wikipedia", path=str(file)))
    before = {split: corpus.split(split).tobytes().decode() for split in ("train", "valid", "test")}
    for title in TITLES:
        assert f"= {title} =\n" in before[wikipedia.split_of(title)]
    grown = tmp_path / "later.xml.gz"
    more = [page(f"New {i}", "new") for i in range(60)]
    grown.write_bytes(gzip.compress(dump(*more[:30], *PAGES, *more[30:]).encode()))
    later = open_corpus(CorpusTable(name="wikipedia", path=str(grown)))
    for split, text in before.items():
        assert text in later.split(split).tobytes().decode()  # in the same order too
    shares = [wikipedia.split_of(f"title {i}") for i in range(2_000)]
    assert 1_740 < shares.count("train") < 1_860 and 60 < shares.count("valid") < 140


def test_the_manifest_counts_and_knows_the_dump(packed):
    file = wikipedia.build(packed)
    manifest = prepared.read_manifest(file)
    assert sum(part["articles"] for part in manifest["parts"].values()) == len(TITLES)
    assert (manifest["redirects"], manifest["other_pages"]) == (1, 1)
    assert sum(part["words"] for part in manifest["parts"].values()) == len(file.read_text().split())
    assert manifest["dump"]["bytes"] == packed.stat().st_size and len(manifest["dump"]["sha256"]) == 64
    assert manifest["made_by"].startswith("headcount ") and manifest["form"] == "markup"
    assert str(cache_folder()) not in json.dumps(manifest)


def test_markup_is_kept_or_rendered(packed):
    kept, rendered = wikipedia.build(packed), wikipedia.build(packed, "text")
    assert "= Article 7 =\n\n'''Article 7''' is [[one|the Article 7]].\n== Empty ==\n\n" in kept.read_text()
    assert "= Article 7 =\n\nArticle 7 is the Article 7.\n\n" in rendered.read_text()
    assert wikipedia.built() == sorted([kept, rendered])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_build_that_was_stopped_goes_on_to_the_same_bytes(tmp_path, monkeypatch, capsys, encoding):
    path = tmp_path / "wiki.xml"
    path.write_bytes(dump(*PAGES).encode(encoding))
    whole = wikipedia.build(path)
    expected = whole.read_bytes(), prepared.manifest_file(whole).read_bytes()
    whole.unlink()
    monkeypatch.setattr(wikipedia, "SAVE_EVERY", 3_000)
    write, written = wikipedia._Build._write, []

    def dying(self, article, *rest):
        if len(written) in (0, 40, 41, 77):  # before the first state, twice in a row, and later
            written.append("death")
            raise KeyboardInterrupt
        written.append(article.title)
        write(self, article, *rest)

    monkeypatch.setattr(wikipedia._Build, "_write", dying)
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            wikipedia.build(path)
    whole = wikipedia.build(path)
    assert (whole.read_bytes(), prepared.manifest_file(whole).read_bytes()) == expected
    assert len(written) < 2 * len(TITLES)  # what was written was not written again
    assert "going on at byte" in capsys.readouterr().err
    assert sorted(p.name for p in cache_folder().iterdir() if "lock" not in p.name) == [
        whole.name,
        f"{whole.name}.json",
    ]


def test_a_state_that_does_not_fit_begins_anew(packed, monkeypatch):
    expected = wikipedia.build(packed).read_bytes()
    kept = wikipedia.build(packed)
    kept.unlink()
    work = kept.with_name(f".{kept.name}.part")
    for state in ("{", "[]", json.dumps({"place": 5}), json.dumps({"made_by": "another", "place": 9, "header": 1})):
        work.mkdir()
        (work / "state.json").write_text(state)
        assert wikipedia.build(packed).read_bytes() == expected
        kept.unlink()


def test_which_one_is_meant(packed, tmp_path):
    with pytest.raises(RequestError, match="no dump was prepared yet"):
        open_corpus(CorpusTable(name="wikipedia"))
    file = wikipedia.build(packed)
    assert open_corpus(CorpusTable(name="wikipedia")).file == file and wikipedia.is_ready()
    wikipedia.build(packed, "text")
    with pytest.raises(RequestError, match="there are several"):
        open_corpus(CorpusTable(name="wikipedia"))
    with pytest.raises(RequestError, match="name one dump"):
        wikipedia.find(["a", "b"])


def test_dumps_that_give_nothing(tmp_path):
    (tmp_path / "empty.xml").write_text(dump())
    with pytest.raises(RequestError, match="holds no article"):
        wikipedia.build(tmp_path / "empty.xml")
    (tmp_path / "torn.xml.bz2").write_bytes(bz2.compress(dump(*PAGES).encode())[:-30])
    with pytest.raises(DataError, match="ends in the middle"):
        wikipedia.build(tmp_path / "torn.xml.bz2")
    assert not wikipedia.is_ready()

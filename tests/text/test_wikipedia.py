"""Evergreen WikiText: stable parts, the same bytes from the same dump, a build that goes on where it was stopped."""

import bz2
import gzip
import json
import tarfile
import zipfile

import pytest

from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import dumps, prepared, wikipedia
from headcount.text.cache import cache_folder
from headcount.text.corpora import open_corpus
from tests.text.dump_maker import dump, page

TITLES = [f"Article {i}" for i in range(120)]
PAGES = [page(title, f"'''{title}''' is [[one|the {title}]].\u2003B\n== Empty ==\n") for title in TITLES]
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


@pytest.mark.parametrize(
    ("title", "split"),
    [  # the nearest of 200,000 on both sides of 0.90 and of 0.95
        ("Article 74522", "train"),
        ("Article 91809", "valid"),
        ("Article 38004", "valid"),
        ("Article 908", "test"),
    ],
)
def test_the_borders_of_the_parts(title, split):
    assert wikipedia.split_of(title) == split


def test_the_manifest_counts_and_knows_the_dump(packed):
    file = wikipedia.build(packed)
    manifest = prepared.read_manifest(file)
    assert sum(part["articles"] for part in manifest["parts"].values()) == len(TITLES)
    assert (manifest["redirects"], manifest["other_pages"]) == (1, 1)
    assert sum(part["words"] for part in manifest["parts"].values()) == len(file.read_bytes().split())
    assert sum(part["lines"] for part in manifest["parts"].values()) == file.read_bytes().count(b"\n")
    assert manifest["dump"]["bytes"] == packed.stat().st_size and len(manifest["dump"]["sha256"]) == 64
    assert manifest["made_by"].startswith("headcount ") and manifest["form"] == "markup"
    assert str(cache_folder()) not in json.dumps(manifest)


def test_markup_is_kept_or_rendered(packed):
    kept, rendered = wikipedia.build(packed), wikipedia.build(packed, "text")
    assert "= Article 7 =\n\n'''Article 7''' is [[one|the Article 7]].\u2003B\n== Empty ==\n\n" in kept.read_text()
    assert "= Article 7 =\n\nArticle 7 is the Article 7.\u2003B\n\n" in rendered.read_text()
    assert wikipedia.built() == sorted([kept, rendered])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_markup_is_kept_as_it_is_with_the_white_space_around_it(tmp_path, encoding):
    texts = ["\n\n lead", "\u00a0x\u2003\n", "plain", " \t", "", "line\u2028sep\u0085 \n\n"]
    pages = [page(f"Title {i}", text) for i, text in enumerate(texts)]
    (tmp_path / "wiki.xml").write_bytes(dump(*pages).encode(encoding))
    parts = dict.fromkeys(("train", "valid", "test"), b"")
    for i, text in enumerate(texts):
        parts[wikipedia.split_of(f"Title {i}")] += f"= Title {i} =\n\n{text}\n\n".encode()
    assert wikipedia.build(tmp_path / "wiki.xml").read_bytes() == b"".join(parts.values())


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
    several = r"several: .*--from\): .*-markup-.*\(markup of wiki\.xml\.bz2\); .*-text-.*\(text of wiki\.xml\.bz2\)"
    with pytest.raises(RequestError, match=several):
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
    assert all(file.name.startswith(".lock") for file in cache_folder().iterdir())  # nothing to go on with


@pytest.mark.parametrize("name", ["wiki.xml.zip", "wiki.xml.tar.gz", "wiki.tgz"])
def test_a_dump_in_an_archive(tmp_path, name):
    (tmp_path / "wiki.xml").write_text(dump(*PAGES))
    plain = wikipedia.build(tmp_path / "wiki.xml").read_bytes()
    if name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.write(tmp_path / "wiki.xml", "wiki.xml")
    else:
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            archive.add(tmp_path / "wiki.xml", "wiki.xml")
    assert wikipedia.build(tmp_path / name).read_bytes() == plain


def test_what_older_rules_made_is_not_used(packed, monkeypatch):
    kept = wikipedia.build(packed)
    assert prepared.read_manifest(kept)["rules"] == wikipedia.RULES
    monkeypatch.setattr(wikipedia, "RULES", wikipedia.RULES + 1)
    assert wikipedia.built() == [] and not wikipedia.is_ready()
    again = wikipedia.build(packed)
    assert again != kept and wikipedia.built() == [again]
    assert open_corpus(CorpusTable(name="wikipedia", path=str(kept))).file == kept  # a run on it can go on


def title_in(split: str, number: int = 0) -> str:
    return [title for title in map(str, range(1_000)) if wikipedia.split_of(title) == split][number]


LINES = "".join(f"line {i} of the article é\n" for i in range(400))


@pytest.mark.parametrize("there", [["train"], ["valid"], ["test"], ["train", "test"], ["valid", "test"], ["train"] * 5])
def test_a_few_articles_are_divided_within_their_text(tmp_path, capsys, there):
    texts = [(title_in(split, there[:i].count(split)), LINES if i == 0 else "short") for i, split in enumerate(there)]
    (tmp_path / "wiki.xml").write_text(dump(*(page(title, text) for title, text in texts)))
    corpus = open_corpus(CorpusTable(name="wikipedia", path=str(tmp_path / "wiki.xml")))
    parts = {split: corpus.split(split).tobytes() for split in ("train", "valid", "test")}
    assert all(part.endswith(b"\n") for part in parts.values())
    whole = b"".join(parts.values())
    assert all(whole.count(wikipedia.form_of(dumps.Article(*text, 0, (0, 0)), None).encode()) == 1 for text in texts)
    divided = corpus.manifest()["divided"]
    said = [split for split in ("train", "valid", "test") if split not in there]
    assert f"falls into {' or '.join(said)}: the text of {there[0]} is divided" in divided
    assert divided in capsys.readouterr().err
    assert sum(part.get("articles", 0) for part in corpus.manifest()["parts"].values()) == len(there)
    if len(set(there)) == 1:
        assert [len(part) / len(whole) for part in parts.values()] == pytest.approx([0.9, 0.05, 0.05], abs=0.01)
    for split in set(there[1:]) - {there[0]}:  # an article that a hash held out stays held out
        assert b"short" in parts[split] and len(parts[split]) < 100


def test_one_line_is_divided_at_words_and_one_word_between_characters(tmp_path):
    for text, ends in (("some words " * 200, b" "), ("é" * 2_000, "é".encode())):
        (tmp_path / "wiki.xml").write_text(dump(page("0", text)))
        corpus = open_corpus(CorpusTable(name="wikipedia", path=str(tmp_path / "wiki.xml")))
        assert corpus.split("train").tobytes().endswith(ends) and corpus.split("valid").tobytes().decode()


def test_ordinary_dumps_are_not_divided(packed):
    assert "divided" not in prepared.read_manifest(wikipedia.build(packed))

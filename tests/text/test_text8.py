"""text8: the published file, or our filter over enwik9; over enwik8 it has another name."""

import gzip
import hashlib

import pooch
import pytest

from headcount import recipe as recipes
from headcount.errors import DataError, RequestError
from headcount.tables import CorpusTable
from headcount.text import published, text8
from headcount.text.cache import cache_folder
from headcount.text.corpora import open_corpus
from headcount.text.published import Published
from tests.text.dump_maker import HEADER, page

TEXT8 = b" anarchism originated as a term of abuse" * 60
DUMP = (
    HEADER
    + page("One", "'''It''' was 19[[th|]] century: see [http://x.org the site], http://y.org/1 & [[A (b)|a]].", None)
    + page("Talk:One", "chat", None)
    + "".join(page(f"T{i}", f"Article {{{{x}}}} number {i}, café.", None) for i in range(200))
).encode()


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    contents = {"enwik8": DUMP[:-3_000], "enwik9": DUMP, "text8": TEXT8}
    for name, content in contents.items():
        known = Published(f"https://nowhere/{name}.zip", hashlib.md5(content).hexdigest())
        monkeypatch.setitem(published.FILES, name, known)

    def offline(url, **_):
        raise ConnectionError

    monkeypatch.setattr(pooch, "retrieve", offline)


def test_letters():
    assert text8.letters("It's 4 o'clock, 2026!") == b" it s four o clock two zero two six"
    assert text8.letters("Café https://x.org/Y?z=1 Ünï") == b" caf n"
    assert text8.letters("see www.x.org/Y, WWW.Z.org. The www is") == b" see the www is"
    assert text8.letters("K \u212a 1\u0661") == b" k one"  # neither the sign of Kelvin nor another script's digits
    assert text8.letters("") == b"" and text8.letters("…") == b""


def test_the_filter_keeps_articles_only_and_stops():
    made = b"".join(text8.filtered([DUMP], "dump"))
    assert made.startswith(b" it was one nine th century see the site a article number zero caf article number one caf")
    assert set(made) <= set(b" abcdefghijklmnopqrstuvwxyz") and b"  " not in made and b"chat" not in made
    assert b"".join(text8.filtered([DUMP], "dump", 50)) == made[:50]


def test_the_published_file(tmp_path):
    (tmp_path / "text8").write_bytes(TEXT8)
    assert open_corpus(CorpusTable(name="text8", path=str(tmp_path / "text8"))).file == tmp_path / "text8"
    (tmp_path / "text8.gz").write_bytes(gzip.compress(TEXT8))
    kept = open_corpus(CorpusTable(name="text8", path=str(tmp_path / "text8.gz"))).file
    assert kept == cache_folder() / "text8" and kept.read_bytes() == TEXT8
    assert open_corpus(CorpusTable(name="text8")).file == kept


@pytest.mark.parametrize("name", ["enwik9", "enwik9.gz"])
def test_our_filter_over_enwik9(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(DUMP) if name.endswith("gz") else DUMP)
    corpus = open_corpus(CorpusTable(name="text8", path=str(tmp_path / name)))
    assert corpus.file.read_bytes() == b"".join(text8.filtered([DUMP], "dump"))
    assert corpus.shares == (0.9, 0.05, 0.05) and corpus.manifest()["made_of"] == hashlib.md5(DUMP).hexdigest()
    made = corpus.file.stat().st_mtime_ns
    assert open_corpus(CorpusTable(name="text8")).file.stat().st_mtime_ns == made
    corpus.file.write_bytes(b"damaged")
    if name == "enwik9.gz":  # it lies unpacked in the cache
        assert open_corpus(CorpusTable(name="text8")).sha256 == corpus.sha256
    else:
        with pytest.raises(RequestError, match="cannot download text8"):
            open_corpus(CorpusTable(name="text8"))


@pytest.mark.parametrize("packed", [False, True])
def test_the_file_that_is_named_is_the_one_that_is_used(tmp_path, packed):
    """Ours and the published one lie side by side, in whatever order they came."""
    ours, ending = b"".join(text8.filtered([DUMP], "dump")), ".gz" if packed else ""
    for name, content in (("enwik9", DUMP), ("text8", TEXT8), ("junk", b"junk" * 99)):
        (tmp_path / f"{name}{ending}").write_bytes(gzip.compress(content) if packed else content)
    for name in ("enwik9", "text8", "enwik9", "text8"):
        corpus = open_corpus(CorpusTable(name="text8", path=str(tmp_path / f"{name}{ending}")))
        assert corpus.file.read_bytes() == (TEXT8 if name == "text8" else ours)
        with pytest.raises(DataError, match="md5"):
            text8.find([str(tmp_path / f"junk{ending}")])
    assert text8.is_ready("text8")
    assert open_corpus(CorpusTable(name="text8")).file.read_bytes() == (TEXT8 if packed else ours)  # if it can choose
    assert text8.find([str(cache_folder() / "text8-own")]).read_bytes() == ours


def test_a_text8_part_is_of_the_file_that_is_named(tmp_path):
    (tmp_path / "enwik8").write_bytes(DUMP[:-3_000])
    kept = text8.find_part([str(tmp_path / "enwik8")])
    assert text8.find_part([str(kept)]) == kept
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(DataError, match="is not enwik8"):
        text8.find_part([str(tmp_path / "junk")])


def test_enwik8_gives_text8_part_and_nothing_else(tmp_path):
    (tmp_path / "enwik8").write_bytes(DUMP[:-3_000])
    with pytest.raises(RequestError, match="ask for text8-part"):
        text8.find([str(tmp_path / "enwik8")])
    corpus = open_corpus(CorpusTable(name="text8-part", path=str(tmp_path / "enwik8")))
    assert corpus.name == "text8-part" and b"".join(text8.filtered([DUMP], "d")).startswith(corpus.file.read_bytes())
    assert text8.is_ready("text8-part") and not text8.is_ready("text8")
    assert open_corpus(CorpusTable(name="text8-part")).sha256 == corpus.sha256


def test_rules_that_changed_make_it_again(tmp_path, monkeypatch):
    (tmp_path / "enwik8").write_bytes(DUMP[:-3_000])
    kept = text8.find_part([str(tmp_path / "enwik8")])
    monkeypatch.setattr(text8, "RULES", text8.RULES + 1)
    assert not text8._is_ours(kept, "enwik8")
    assert text8._is_ours(text8.find_part([str(tmp_path / "enwik8")]), "enwik8")


def test_something_else(tmp_path):
    (tmp_path / "x").write_bytes(b"something else" * 100)
    with pytest.raises(DataError, match="is not text8 or enwik9"):
        text8.find([str(tmp_path / "x")])


def test_no_published_figure_stands_beside_text8_part():
    tables = {"corpus": {"name": "text8-part"}, "published": {"test": 1.08}}
    with pytest.raises(RequestError, match="text8-part"):
        recipes.from_dict(tables)
    assert recipes.from_dict({**tables, "corpus": {"name": "text8"}}).published is not None

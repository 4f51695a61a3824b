"""Texts that are named: files, folders, globs, archives, pipes; the same bytes however they lie."""

import bz2
import gzip
import hashlib
import io
import os
import zipfile

import pytest

from headcount.errors import DataError, RequestError
from headcount.text import sources
from headcount.text.cache import cache_folder

PARTS = {"a.txt": b"one " * 100, "b/c.txt": b"two " * 100, "b.txt": b"three " * 100}
WHOLE = b"".join(PARTS[name] for name in ("a.txt", "b.txt", "b/c.txt"))


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "texts"
    for name, content in PARTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def gathered(*paths) -> bytes:
    return sources.gather([str(path) for path in paths]).read_bytes()


def test_a_plain_file_stays_where_it_lies(folder):
    assert sources.gather([str(folder / "a.txt")]) == folder / "a.txt"


def test_several_files_are_joined_in_the_order_given(folder):
    assert gathered(folder / "b.txt", folder / "a.txt") == PARTS["b.txt"] + PARTS["a.txt"]


def test_a_folder_is_joined_sorted_without_hidden_and_empty_files(folder):
    for name in (".hidden", "empty.txt", ".git/config", "b/.DS_Store"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"" if name == "empty.txt" else b"not this")
    kept = sources.gather([str(folder)])
    assert kept.read_bytes() == WHOLE and kept.stem == hashlib.sha256(WHOLE).hexdigest()


def test_a_glob_is_joined_sorted(folder):
    assert gathered(folder / "*.txt") == PARTS["a.txt"] + PARTS["b.txt"]
    assert gathered(folder / "**" / "*.txt") == WHOLE
    with pytest.raises(RequestError, match="nothing matches"):
        gathered(folder / "*.md")
    (folder / "[odd].txt").write_bytes(b"a name, not a pattern")
    assert gathered(folder / "[odd].txt") == b"a name, not a pattern"


def test_packed_texts_give_the_same_bytes(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        for name in ("b/c.txt", "b.txt", "a.txt"):
            archive.writestr(name, PARTS[name])
        archive.writestr("__MACOSX/._a.txt", b"not this")
    assert gathered(tmp_path / "t.zip") == WHOLE
    (folder / "a.txt.gz").write_bytes(gzip.compress((folder / "a.txt").read_bytes()))
    (folder / "a.txt").unlink()
    assert gathered(folder) == WHOLE


def test_what_is_packed_is_unpacked_once_and_again_when_it_changes(tmp_path):
    path = tmp_path / "notes.txt.gz"
    path.write_bytes(gzip.compress(b"some notes " * 100))
    kept = sources.gather([str(path)])
    made = kept.stat().st_mtime_ns
    assert sources.gather([str(path)]) == kept and kept.stat().st_mtime_ns == made
    path.write_bytes(gzip.compress(b"other notes " * 100))
    assert gathered(path) == b"other notes " * 100
    kept.write_bytes(b"damaged")
    path.write_bytes(gzip.compress(b"some notes " * 100))
    assert gathered(path) == b"some notes " * 100


def test_damaged_and_empty_ones(tmp_path):
    (tmp_path / "torn.bz2").write_bytes(bz2.compress(b"x" * 1_000)[:-5])
    with pytest.raises(DataError, match=r"torn\.bz2"):
        gathered(tmp_path / "torn.bz2")
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("empty", b"")
    with pytest.raises(RequestError, match="holds no text"):
        gathered(tmp_path / "none.zip")
    (tmp_path / "empty.gz").write_bytes(b"")
    with pytest.raises(RequestError, match="is empty"):
        gathered(tmp_path / "empty.gz")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RequestError, match="not a regular file"):
        gathered(tmp_path / "pipe")
    assert not list(cache_folder().glob(".tmp-*"))


def test_piped_text_is_kept_by_its_hash():
    kept = sources.keep_piped(io.BytesIO(b"some text"))
    assert kept.read_bytes() == b"some text" and kept.stem == hashlib.sha256(b"some text").hexdigest()
    with pytest.raises(RequestError, match="standard input is empty"):
        sources.keep_piped(io.BytesIO(b""))


def test_what_a_run_is_called_after():
    names = {"notes.txt": "notes", "notes.txt.gz": "notes", "a/b.tar.xz": "b", "texts/*.txt": "texts", "*.txt": "text"}
    assert {name: sources.stem(name) for name in names} == names
    assert sources.stem("texts/") == "texts" and sources.stem("a/**/x*") == "text"


def test_gone_knows_globs(folder):
    assert sources.gone([str(folder), str(folder / "*.txt")]) is None
    assert sources.gone([str(folder), str(folder / "nowhere")]) == str(folder / "nowhere")

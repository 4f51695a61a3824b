"""Every command of the README runs, word for word, with few steps and small data put under it."""

import bz2
import hashlib
import io
import re
import shlex
import sysconfig
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest

import headcount.use.train as training
from headcount.cli import run
from headcount.text import corpora, published, wikitext
from headcount.text.published import Published
from tests.conftest import make_text
from tests.text.dump_maker import dump, page

README = Path("README.md").read_text()
SMALL = ["model.width=8", "evaluate.limit=256"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def shell_lines() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line and not line.startswith("#")]


@pytest.fixture
def small_world(tmp_path, monkeypatch):
    """Texts, a small standard library, a small enwik8, and at most four steps for whatever is trained."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_bytes(make_text(6_000))
    (tmp_path / "other.txt").write_bytes(make_text(6_000, seed=1))
    library = tmp_path / "library"
    library.mkdir()
    (library / "one.py").write_bytes(make_text(8_000, seed=2))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(library))
    enwik8 = make_text(9_000, seed=3)
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", enwik8)
    known = Published("https://nowhere/enwik8.zip", hashlib.md5(enwik8).hexdigest())
    monkeypatch.setitem(published.FILES, "enwik8", known)
    pages = [page(f"Title {i}", make_text(300, seed=i).decode()) for i in range(60)]
    (tmp_path / "wiki.xml.bz2").write_bytes(bz2.compress(dump(*pages).encode()))
    small_wikitext(tmp_path / "wikitext-2.zip", monkeypatch)
    files = {True: "wikitext-2.zip", False: "enwik8.zip"}
    monkeypatch.setattr(pooch, "retrieve", lambda url, **_: str(tmp_path / files["wikitext" in url]))
    train, resume = training.train, training.resume

    def few_steps(*what, set=(), steps=None, minutes=None, start_from=None, **rest):
        small = SMALL[1:] if start_from else SMALL
        return train(*what, set=[*set, *small], steps=4, start_from=start_from, **rest)

    monkeypatch.setattr(training, "train", few_steps)
    monkeypatch.setattr(training, "resume", lambda path, steps=None, **rest: resume(path, steps=steps and 6, **rest))
    return tmp_path


def small_wikitext(file, monkeypatch):
    """As many words as an adaptive softmax has bands for."""
    words = " \n ".join(f"word{i} word{i % 9}" for i in range(10_500)).encode()
    parts = {split: b" \n" + words[: 200_000 if split == "train" else 3_000] + b" \n" for split in corpora.SPLITS}
    with zipfile.ZipFile(file, "w") as archive:
        for split, part in parts.items():
            archive.writestr(f"wikitext-2/wiki.{split}.tokens", part)
    known = tuple(hashlib.sha1(part).hexdigest() for part in parts.values())
    monkeypatch.setitem(wikitext.FORMS, "wikitext-2", wikitext.Form("wikitext-2.zip", "", "tokens", known))


def test_every_command_runs(small_world, monkeypatch, capsysbinary):
    ran = []
    for line in shell_lines():
        if line.startswith("cat "):
            files, _, line = line.partition(" | ")
            content = b"".join((small_world / name).read_bytes() for name in files.split()[1:])
            monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        program, *arguments = shlex.split(line)
        if program == "headcount":
            code = run(arguments)
            assert code == 0, (line, capsysbinary.readouterr().err.decode())
            ran.append(arguments[0])
        else:
            assert line in ("make", "make test", "pip install ."), line
    assert set(ran) >= {
        "demo",
        "train",
        "resume",
        "evaluate",
        "generate",
        "score",
        "pack",
        "info",
        "models",
        "corpora",
        "corpus",
    }
    assert (small_world / "runs" / "both" / "best.json").exists()


def test_the_python_example_runs(small_world):
    (example,) = blocks("python")
    names: dict[str, object] = {}
    exec(example, names)
    assert names["lm"].generate(b"Once ", 5) and names["run"].path.name == "my"


def test_make_has_the_targets():
    makefile = Path("Makefile").read_text()
    assert makefile.index("demo:") < makefile.index("test:") and "headcount demo" in makefile


def test_nobody_is_sent_to_a_package_that_is_not_ours():
    """The name is not registered: extras are named by the package they bring."""
    pages = [Path("README.md"), *Path("docs").glob("*.md"), *Path("src").rglob("*.py")]
    assert not [page for page in pages if re.search(r"pip install\s+['\"]?headcount", page.read_text())]

"""Texts however they are packed, archives that are hostile, downloads that break (rows 20 – 22)."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import lzma
import os
import random
import signal
import stat
import tarfile
import time
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

from headcount.text import sources
from headcount.text.cache import LOCKS
from tests.conftest import make_text
from tests.faults import processes
from tests.faults.outcome import Outcome
from tests.faults.server import Behaviour, serving
from tests.text.dump_maker import dump, page

TEXT = make_text(3_000)
LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE)


@contextlib.contextmanager
def own_cache(folder: Path) -> Iterator[Path]:
    """A cache of this row's own, for this process and for those it starts."""
    before = os.environ.get("HEADCOUNT_CACHE")
    os.environ["HEADCOUNT_CACHE"] = str(folder / "cache")
    try:
        yield folder / "cache"
    finally:
        os.environ.pop("HEADCOUNT_CACHE")
        if before is not None:
            os.environ["HEADCOUNT_CACHE"] = before


def prepare(arguments: list[object], log: Path, fault=None) -> tuple[int, str]:
    """`headcount corpus …` in a process of its own: its exit code and what it said."""
    code = processes.run(["corpus", *arguments], log, fault)
    return code, processes.said(log)


def tarred(members, mode: str = "w:") -> bytes:
    """A tar of names with contents; a kind in place of content is a link or a device."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content in LINKS:
                info.type, info.linkname = content, "../../target"
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def zipped(members, kind: int = 0) -> bytes:
    """A zip of names with contents; `kind` is what the names claim to be."""
    packed = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(packed, "w") as archive:
        warnings.simplefilter("ignore")  # two files of one name
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = kind << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return packed.getvalue()


def packed_texts(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 20: one text, plain, packed, in a folder and by a glob, gives the same bytes."""
    outcome, parts = Outcome(), {"a.txt": TEXT[:1_000], "b.txt": TEXT[1_000:]}
    (folder / "texts").mkdir()
    for name, content in parts.items():
        (folder / "texts" / name).write_bytes(content)
    ways = {
        "t.gz": gzip.compress(TEXT),
        "t.bz2": bz2.compress(TEXT[:7]) + bz2.compress(TEXT[7:]),
        "t.xz": lzma.compress(TEXT),
        "t.zip": zipped(reversed(parts.items())),
        "t.tar": tarred(reversed(parts.items())),
        "t.tar.gz": tarred(reversed(parts.items()), "w:gz"),
        "t.tar.bz2": tarred(parts.items(), "w:bz2"),
        "t.tar.xz": tarred(parts.items(), "w:xz"),
        "texts": None,
        "texts/*.txt": None,
    }
    with own_cache(folder):
        for name, content in list(ways.items())[:count]:
            if content is not None:
                (folder / name).write_bytes(content)
            with outcome.one(name):
                assert sources.gather([str(folder / name)]).read_bytes() == TEXT
    return outcome


def hostile() -> dict[str, bytes]:
    """Archives that nobody should unpack, by name; the ending says how they are packed."""
    zeros, good = bytes(5 << 24), ("good.txt", TEXT)
    outside = ("../escaped", "/escaped", "a/../../escaped", "C:\\escaped", "..\\escaped")
    made = {f"outside{i}.zip": zipped([good, (name, TEXT)]) for i, name in enumerate(outside)}
    made |= {f"outside{i}.tar": tarred([good, (name, TEXT)]) for i, name in enumerate(outside)}
    made |= {f"link{i}.tar": tarred([good, ("evil", kind)]) for i, kind in enumerate(LINKS[:5])}
    made["link then file.tar.gz"] = tarred([("evil", LINKS[0]), ("evil/x", TEXT)], "w:gz")
    made["link.zip"] = zipped([("evil", b"/etc/passwd")], stat.S_IFLNK | 0o777)
    made["device.zip"] = zipped([("evil", b"")], stat.S_IFCHR | 0o666)
    made["twice.zip"], made["twice.tar"] = zipped([good, good]), tarred([good, good])
    made["bomb.gz"], made["bomb.bz2"] = gzip.compress(zeros, 1), bz2.compress(zeros, 1)
    made["bomb.xz"] = lzma.compress(zeros, preset=0)
    made["bomb of bombs.zip"] = zipped([(str(i), zeros[: 5 << 22]) for i in range(4)])
    made["bomb.tar.gz"] = tarred([("a", zeros)], "w:gz")
    made["torn.zip"], made["torn.tar.xz"] = zipped([good])[:-9], tarred([good], "w:xz")[:-9]
    made["no.zip"], made["no.gz"], made["no.tar"] = b"PK\x03\x04" + TEXT, b"\x1f\x8b" + TEXT, TEXT
    return made


def hostile_archives(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 22: refused in a sentence, in little memory, and nothing appears outside the cache."""
    outcome, log = Outcome(), folder.parent / "log"
    cases = list(hostile().items())
    with own_cache(folder.parent):
        prepare(["stdlib"], log)  # what a process takes that does nothing
        for number in range(min(count, len(cases))):
            name, content = cases[number * len(cases) // min(count, len(cases))]
            (folder / name).write_bytes(content)
            with outcome.one(name):
                code, said = prepare([folder / name], log, ("limit", 1 << 29, 20))
                assert code == 3, f"exit code {code}: {said}"
                assert name in said and "Traceback" not in said and len(said.splitlines()) == 1, said
                assert [p.name for p in folder.iterdir()] == [name], "something was created"
                assert not Path("/escaped").exists() and not (folder.parent / "escaped").exists()
                assert not list((folder.parent / "cache").glob(".tmp-*"))
            (folder / name).unlink()
        with outcome.one("names that differ in case are two files"):
            (folder / "case.zip").write_bytes(zipped([("Readme", TEXT), ("README", TEXT)]))
            assert sources.gather([str(folder / "case.zip")]).read_bytes() == TEXT + TEXT
    return outcome


CONTENT = random.Random(1).randbytes(300_000)
PACKED = zipped([("enwik8", CONTENT)])
DOWNLOADS: dict[str, tuple[dict[str, object], int]] = {
    "whole": ({}, 0),
    "breaks off twice": ({"cut": [100_000, 70_000]}, 0),
    "breaks off, no ranges": ({"cut": [100_000], "ranges": False}, 0),
    "breaks off, weak tag": ({"cut": [100_000], "tag": 'W/"x"'}, 0),
    "no length": ({"length": False}, 0),
    "a byte changed": ({"content": PACKED[:900] + b"!" + PACKED[901:]}, 3),
    "another file": ({"content": zipped([("enwik8", CONTENT[:-1] + b"!")])}, 3),
    "cut short, no length": ({"length": False, "always_cut": 200_000}, 3),
    "a page in its place": ({"content": b"<html>Sign in</html>"}, 3),
    "always breaks off": ({"always_cut": 100_000, "ranges": False}, 2),
    "404": ({"status": 404}, 2),
    "500": ({"status": 500}, 2),
    "redirect to a file": ({"status": 302, "location": "file:///etc/passwd"}, 2),
    "redirect in circles": ({"status": 302, "location": "/enwik8.zip"}, 2),
    "stalls": ({"stall": 3.0, "ranges": False}, 2),
}


def broken_downloads(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 21: what is not the file is never used, and the next try gets it."""
    outcome, log, md5 = Outcome(), folder / "log", hashlib.md5(CONTENT).hexdigest()
    for number, (name, (how, expected)) in enumerate(list(DOWNLOADS.items())[:count]):
        place = folder / str(number)
        place.mkdir()
        behaviour = Behaviour(PACKED)
        vars(behaviour).update(how)
        with outcome.one(name), own_cache(place) as cache, serving(behaviour) as address:
            fault = ("published_at", "enwik8", f"{address}/enwik8.zip", md5)
            code, said = prepare(["enwik8"], log, fault)
            assert code == expected, f"exit code {code}: {said}"
            assert "Traceback" not in said
            assert (cache / "enwik8").exists() == (code == 0)
            assert code != 2 or "put the file at" in said
            vars(behaviour).update(vars(Behaviour(PACKED)))
            code, said = prepare(["enwik8"], log, fault)
            assert code == 0 and (cache / "enwik8").read_bytes() == CONTENT, said
    return outcome


def kill_when_come(process, whole: Path, share: float) -> None:
    """Kill it when so much of what was missing has come; from 1 on a while after that, by when it unpacks or has ended.

    By what has come and not by the clock: a crowded machine may not even have begun after half a second.
    """
    part = whole.with_name(f"{whole.name}.part")
    had = part.stat().st_size if part.exists() else 0
    wanted = had + min(share, 1.0) * (len(PACKED) - had)
    while process.is_alive() and not whole.exists():
        with contextlib.suppress(FileNotFoundError):
            if part.stat().st_size >= wanted:
                break
        time.sleep(0.001)
    process.join(max(0.0, share - 1))
    process.kill()


def killed_downloads(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 21: kill -9 at random moments of fetching and unpacking: never a bad file, and in the end the right one."""
    outcome, log, draw = Outcome(), folder / "log", random.Random(0)
    md5 = hashlib.md5(CONTENT).hexdigest()
    behaviour = Behaviour(PACKED, pause=0.01)
    with own_cache(folder) as cache, serving(behaviour) as address:
        fault = ("published_at", "enwik8", f"{address}/enwik8.zip", md5)
        while outcome.tried < count:
            process = processes.start(["corpus", "enwik8"], log, fault)
            kill_when_come(process, cache / "fetched" / "enwik8.zip", draw.uniform(0, 1.5))
            process.join()
            with outcome.one(f"kill {outcome.tried}"):
                assert process.exitcode in (0, -signal.SIGKILL)
                if (cache / "enwik8").exists():
                    assert (cache / "enwik8").read_bytes() == CONTENT
                    (cache / "enwik8").unlink()
                    (cache / "fetched" / "enwik8.zip").unlink()
        with outcome.one("the file that comes out"):
            code, said = prepare(["enwik8"], log, fault)
            assert code == 0 and (cache / "enwik8").read_bytes() == CONTENT, said
            left = {p.name for p in cache.rglob("*") if p.is_file() and p.parent.name != LOCKS}
            assert left == {"enwik8", "enwik8.zip"}, left
            assert any(asked for asked in behaviour.asked), "none went on where another stopped"
    return outcome


def killed_builds(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 21: kill -9 at random moments of building a corpus from a dump: it goes on, and the bytes are the same."""
    outcome, log, draw = Outcome(), folder / "log", random.Random(0)
    pages = [page(f"Title {i}", make_text(2_000, seed=i).decode()) for i in range(600)]
    packed = folder / "wiki.xml.bz2"
    packed.write_bytes(bz2.compress("".join(dump(*pages)).encode()))
    with own_cache(folder / "whole"):
        code, said = prepare(["wikipedia", "--dump", packed, "--text", "--json"], log)
        assert code == 0, said
        whole = {p.name: p.read_bytes() for p in (folder / "whole" / "cache").glob("wikipedia-*")}
    with own_cache(folder) as cache:
        arguments = ["corpus", "wikipedia", "--dump", packed, "--text"]
        while outcome.tried < count:
            process = processes.start(arguments, log, ("save_often", 50_000))
            time.sleep(draw.uniform(0, 0.4))
            process.kill()
            process.join()
            with outcome.one(f"kill {outcome.tried}"):
                made = {p.name: p.read_bytes() for p in cache.glob("wikipedia-*")}
                assert not any(name.endswith(".json") for name in made) or made == whole, "a bad corpus is in the cache"
                for name in made:
                    (cache / name).unlink()
        with outcome.one("the corpus that comes out"):
            code, said = prepare(arguments[1:], log)
            assert code == 0 and {p.name: p.read_bytes() for p in cache.glob("wikipedia-*")} == whole, said
            assert not [p.name for p in cache.iterdir() if p.name.startswith((".tmp-", ".wikipedia"))]
    return outcome

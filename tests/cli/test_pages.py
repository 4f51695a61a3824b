"""Where pages and packed models go: files, links, pipes, devices, standard output.

No test names a node of the machine, which a fault of ours would replace: they are made in a temporary folder.
"""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headcount import load
from headcount.cli import run
from tests.conftest import make_text

HEADCOUNT = [sys.executable, "-m", "headcount"]
SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256", "--steps", "3"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "my.txt").write_bytes(make_text(20_000))
    (folder / "short.txt").write_bytes(make_text(300))
    assert run(["train", str(folder / "my.txt"), "--run", str(folder / "run"), *SMALL]) == 0
    return folder


@pytest.fixture
def commands(trained):
    """Every command that writes a file where -o says, and what the file begins with."""
    source, short = str(trained / "run"), str(trained / "short.txt")
    return [
        ["report", source],
        ["score", source, short, "--html"],
        ["inspect", "attention", source, short],
        ["compare", source],
        ["evaluate", source, "--curve", "context", "--most", "4", "--positions", "8"],
        ["probe", "copy", source, "--most", "16", "--trials", "4"],
        ["pack", source],
    ]


def test_a_link_stays_a_link(commands, tmp_path, capsys):
    for number, command in enumerate(commands):
        link, target = tmp_path / f"link{number}", tmp_path / f"target{number}"
        target.write_bytes(b"old")
        link.symlink_to(target)
        assert run([*command, "-o", str(link)]) == 0, command
        assert link.is_symlink() and target.stat().st_size > 1_000


def test_a_device_stays_a_device(commands, tmp_path, capsys):
    node = tmp_path / "null"
    try:
        os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"")
    except PermissionError:
        pytest.skip("only root makes nodes, and not on every file system")
    for command in commands:
        assert run([*command, "-o", str(node)]) == 0, command
        assert stat.S_ISCHR(node.lstat().st_mode), command


def test_the_reader_of_a_pipe_gets_it(trained, tmp_path, capsys):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    for command in (["report", str(trained / "run")], ["pack", str(trained / "run")]):
        reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
        reader.start()
        assert run([*command, "-o", str(pipe)]) == 0
        reader.join(10)
        assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert found[0].startswith(b"<!doctype html>") and found[0].endswith(b"</html>\n")
    (tmp_path / "packed").write_bytes(found[1])
    assert load(tmp_path / "packed").score(b"a") == load(trained / "run").score(b"a")
    assert f"{pipe}: {len(found[1]):,} bytes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["-", "link"])
def test_a_page_on_standard_output_is_alone_there(trained, tmp_path, capsys, monkeypatch, name):
    if not Path("/dev/stdout").exists():
        pytest.skip("no such name here")
    (tmp_path / "link").symlink_to("/dev/stdout")
    monkeypatch.chdir(tmp_path)
    source = str(trained / "run")
    for command, table in (
        (["report", source], ""),
        (["compare", source], "bits per byte"),
        (["evaluate", source, "--curve", "context", "--most", "4", "--positions", "8"], "bits per byte by context"),
        (["probe", "copy", source, "--most", "16", "--trials", "4"], "bits per byte gained"),
    ):
        assert run([*command, "-o", name]) == 0
        said = capsys.readouterr()
        assert said.out.startswith("<!doctype html>") and said.out.endswith("</html>\n") and table in said.err
    assert [p.name for p in tmp_path.iterdir()] == ["link"] and (tmp_path / "link").is_symlink()
    for command in (["compare", source], ["evaluate", source, "--curve", "context"], ["probe", "copy", source]):
        assert run([*command, "--json", "-o", name]) == 2
        said = capsys.readouterr()
        assert not said.out and "--json and a page on standard output" in said.err


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no such name here")
def test_standard_output_by_its_name_goes_on_where_it_stands(trained, tmp_path):
    (tmp_path / "link").symlink_to("/dev/stdout")
    log, english = tmp_path / "log", {**os.environ, "PYTHONIOENCODING": "ascii"}
    log.write_bytes(b"before\n")
    with log.open("ab") as opened:
        command = [*HEADCOUNT, "report", str(trained / "run"), "-o", str(tmp_path / "link")]
        subprocess.run(command, stdout=opened, env=english, check=True)
        opened.write(b"after\n")
    made = log.read_bytes()
    assert made.startswith(b"before\n<!doctype html>") and made.endswith(b"</html>\nafter\n") and "→".encode() in made
    command = [*HEADCOUNT, "pack", str(trained / "run"), "-o", str(tmp_path / "link")]
    packed = subprocess.run(command, capture_output=True, check=False)
    (tmp_path / "packed").write_bytes(packed.stdout)
    assert packed.returncode == 0 and load(tmp_path / "packed").score(b"a") == load(trained / "run").score(b"a")


def test_a_page_that_cannot_be_written_is_said_by_its_own_name(trained, tmp_path, capsys):
    source = str(trained / "run")
    assert run(["report", source, "-o", str(tmp_path / "nowhere" / "x.html")]) == 2
    assert capsys.readouterr().err == f"headcount: {tmp_path / 'nowhere' / 'x.html'}: No such file or directory\n"
    assert run(["report", source, "-o", str(tmp_path)]) == 2
    assert f"{tmp_path}: Is a directory" in capsys.readouterr().err
    limited = f"ulimit -f 8; {' '.join([*HEADCOUNT, 'report', source, '-o', str(tmp_path / 'x.html')])}"
    done = subprocess.run(limited, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr == f"headcount: {tmp_path / 'x.html'}: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_a_comparison_beside_json_only_if_it_is_named(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["compare", str(trained / "run"), "--json"]) == 0 and list(tmp_path.iterdir()) == []
    assert json.loads(capsys.readouterr().out)
    assert run(["compare", str(trained / "run"), "--json", "-o", "c.html"]) == 0
    assert json.loads(capsys.readouterr().out) and (tmp_path / "c.html").exists()

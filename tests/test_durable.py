"""Files that are whole or not there, and names that lead to something else than a file: that is never replaced.

No test here names a node of the machine, which a fault of ours would replace: they are made in a temporary folder.
"""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headcount import durable


def left_over(folder):
    return [p.name for p in folder.iterdir() if p.name.startswith(durable.TEMPORARY)]


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path):
    file = tmp_path / "a"
    durable.write(file, [b"one", b" two"])
    assert file.read_bytes() == b"one two"

    def broken():
        yield b"half"
        raise ValueError

    with pytest.raises(ValueError):
        durable.write(file, broken())
    assert file.read_bytes() == b"one two" and left_over(tmp_path) == []


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    for name in ("there", "not-yet"):
        target, link, second = tmp_path / "far" / name, tmp_path / name, tmp_path / f"{name}-2"
        link.symlink_to(f"far/{name}")
        second.symlink_to(link)
        if name == "there":
            target.write_bytes(b"old")
        durable.write_text(second, "new")
        assert second.is_symlink() and link.is_symlink() and not target.is_symlink() and target.read_bytes() == b"new"
    assert left_over(tmp_path) == left_over(tmp_path / "far") == []


def test_links_that_lead_in_a_circle_are_named(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError) as error:
        durable.write(tmp_path / "a", [b"x"])
    assert error.value.filename == str(tmp_path / "a") and (tmp_path / "b").is_symlink()


def test_a_pipe_is_written_into(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    durable.write(pipe, [b"one", b" two"])
    reader.join(10)
    assert found == [b"one two"] and stat.S_ISFIFO(pipe.lstat().st_mode) and left_over(tmp_path) == []


@pytest.mark.parametrize("linked", [False, True])
def test_a_device_is_written_into_and_stays_one(tmp_path, linked):
    node, name = tmp_path / "null", tmp_path / ("link" if linked else "null")
    try:
        os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"")
    except PermissionError:
        pytest.skip("only root makes nodes, and not on every file system")
    if linked:
        name.symlink_to(node)
    durable.write(name, [b"x" * 10_000])
    assert stat.S_ISCHR(node.lstat().st_mode) and name.is_symlink() == linked and left_over(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names for open files here")
def test_an_open_file_by_its_name_is_written_into_where_it_stands(tmp_path):
    """As a shell's `{ …; } >> log` expects: what is there stays, and what comes after it is not lost."""
    code = """
import os
from pathlib import Path
from headcount import durable
for name in ("link", "open/1"):
    durable.write(Path(name), [b"page\\n"])
os.write(1, b"after\\n")
"""
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "open").symlink_to("/dev/fd")
    (tmp_path / "log").write_bytes(b"before\n")
    with (tmp_path / "log").open("ab") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, cwd=tmp_path, check=True)
    assert (tmp_path / "log").read_bytes() == b"before\n" + 2 * b"page\n" + b"after\n"
    piped = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=tmp_path, check=True)
    assert piped.stdout == 2 * b"page\n" + b"after\n"
    assert durable.descriptor_of(tmp_path / "link") == 1 and durable.descriptor_of(tmp_path / "log") is None


def test_what_went_wrong_is_said_of_the_name_that_was_given(tmp_path, monkeypatch):
    """Not of ours beside it, and not of nothing."""
    (tmp_path / "file").write_bytes(b"old")
    for name in ("nowhere/x", "file/x", "."):
        with pytest.raises(OSError) as error:
            durable.write(tmp_path / name, [b"x"])
        assert error.value.filename == str(tmp_path / name), name

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable.os, "fsync", full)
    with pytest.raises(OSError, match="No space") as error:
        durable.write(tmp_path / "file", [b"new"])
    assert error.value.filename == str(tmp_path / "file") and (tmp_path / "file").read_bytes() == b"old"
    assert left_over(tmp_path) == []

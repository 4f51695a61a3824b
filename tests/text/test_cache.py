"""The cache: where it is told to be, and one maker at a time."""

import threading
import time

import pytest

from headcount.errors import RequestError
from headcount.text.cache import cache_folder, making


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(RequestError, match="set HEADCOUNT_CACHE"):
        cache_folder()


def test_one_maker_at_a_time(capsys):
    order = []

    def make(number):
        with making("thing"):
            order.append(number)
            time.sleep(0.2)
            order.append(number)

    makers = [threading.Thread(target=make, args=(number,)) for number in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert order in ([0, 0, 1, 1], [1, 1, 0, 0]) and "another process is making thing" in capsys.readouterr().err


def test_what_a_killed_maker_left_is_removed_and_what_others_write_is_not():
    for name in (".tmp-1-thing", ".tmp-1-other"):
        (cache_folder() / name).write_text("half")
    with making("thing") as kept:
        assert kept == cache_folder() / "thing"
    assert [p.name for p in cache_folder().glob(".tmp-*")] == [".tmp-1-other"]


def test_locks_lie_in_one_place():
    for name in ("thing", "other"):
        with making(name) as kept:
            kept.write_text(name)
    assert sorted(p.name for p in cache_folder().iterdir() if not p.name.startswith(".locks")) == ["other", "thing"]

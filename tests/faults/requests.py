"""Requests that are wrong, texts and places that are odd, things that changed in between (rows 18 – 20, 28)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.conftest import make_text
from tests.faults import processes
from tests.faults.outcome import Outcome
from tests.faults.runs import assert_same
from tests.faults.stops import whole_run

SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256", "--steps", "3"]
WRONG = {
    "seed": ("-1", "1.5", "x", "true", "[1]"),
    "corpus.split": ("[0.5]", "[0.9, 0.2]", "[0, 1]", "0.5", "[0.5, nan]"),
    "corpus.name": ("text9", "3", ""),
    "corpus.sha256": ("abc", "5"),
    "tokens.kind": ("letters", "1"),
    "model.kind": ("gpt", "[1]", "sha_rnn"),
    "model.width": ("0", "-8", "1.5", "x", "1e9", "inf", "true", '"16"'),
    "model.blocks": ("0", "-1", "2.5", "10000"),
    "model.attention": ("[5]", "[-1]", "0", "[0, 0]", "[0.5]", "x"),
    "model.window": ("0", "-1", "1e99", "x"),
    "model.window_rule": ("last", "1"),
    "model.boom": ("0", "100", "x"),
    "model.dropout": ("1.0", "-0.1", "nan", "x", "2"),
    "model.eps": ("0", "-1", "1", "nan"),
    "model.init": ("big", "0"),
    "model.vocabulary": ("1", "100", "300"),
    "model.widht": ("8",),
    "batches.streams": ("0", "-1", "1.5", "x", "100000"),
    "batches.segment": ("0", "-5", "many", "1e9"),
    "batches.lengths": ("random", "3"),
    "batches.accumulate": ("0", "99", "x"),
    "optimiser.kind": ("sdg", "adam", "1"),
    "optimiser.lr": ("0", "-1", "inf", "nan", "100", "x"),
    "optimiser.betas": ("[0.9]", "[0.9, 1.0]", "[-0.1, 0.9]", "0.9"),
    "optimiser.eps": ("0", "-1e-8", "nan"),
    "optimiser.clip": ("0", "-1", "x"),
    "optimiser.weight_decay": ("-1", "nan"),
    "optimiser.learning_rate": ("0.001",),
    "schedule.kind": ("cosin", "2"),
    "schedule.warmup": ("-0.1", "1.5", "x"),
    "schedule.floor": ("-1", "2"),
    "train.steps": ("0", "-1", "1.5", "x"),
    "train.epochs": ("0", "-1", "1e9", "nan"),
    "train.evaluate_every": ("0", "x"),
    "train.save_every": ("0", "-2"),
    "train.give_up_after": ("0",),
    "evaluate.protocol": ("best", "5"),
    "evaluate.limit": ("0", "-1", "x"),
    "modle.width": ("3",),
}
"""Keys, and values that they must not have."""


def bad_recipes(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 18: exit 2, one sentence that names the key, nothing created."""
    outcome = Outcome()
    (folder / "my.txt").write_bytes(make_text(5_000))
    before, here = sorted(folder.rglob("*")), Path.cwd()
    cases = [(key, value) for key, values in WRONG.items() for value in values]
    os.chdir(folder)
    try:
        for number in range(count):
            key, value = cases[number * len(cases) // count]
            log = folder.parent / "log"
            code = processes.run(["train", "my.txt", "--set", f"{key}={value}"], log)
            said = processes.said(log)
            with outcome.one(f"{key}={value}"):
                assert code == 2, f"exit code {code}: {said}"
                assert said.startswith("headcount: ") and "Traceback" not in said and len(said.splitlines()) <= 2, said
                assert (key.split(".")[-1] if key != "modle.width" else "modle") in said, said
                assert sorted(folder.rglob("*")) == before, "something was created"
            shutil.rmtree(folder / "runs", ignore_errors=True)  # the next case is judged by itself
    finally:
        os.chdir(here)
    return outcome


def changed_between(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 19: a recipe or a corpus that changed between two parts of a run is refused, with the difference."""
    changes = (
        ("lr = 0.01", "lr = 0.02", "optimiser.lr was 0.01, is 0.02"),
        ("seed = 3", "seed = 4", "seed was 3, is 4"),
        ("steps = 12", "steps = 13", "train.steps was 12, is 13"),
        ("width = 16", "width = 32", "model.width was 16, is 32"),
        ("window = 40", "window = 41", "model.window was 40, is 41"),
        ("segment = 16", "segment = 32", "batches.segment was 16, is 32"),
        ("dropout = 0.1", "dropout = 0.2", "model.dropout was 0.1, is 0.2"),
        ("corpus", "a byte more", "has changed: its sha256 is"),
        ("corpus", "a byte changed", "has changed: its sha256 is"),
        ("corpus", "gone", "my.txt"),
    )
    whole, outcome, text = whole_run(folder, recipe), Outcome(), recipe.parent / "my.txt"
    content = text.read_bytes()
    for what, change, expected in changes[:count]:
        run = folder / "changed"
        assert processes.run(["train", recipe, "--run", run], folder / "log", ("die_after", 9)) == -9
        kept = (run / "recipe.toml").read_text()
        if what != "corpus":
            assert what in kept
            (run / "recipe.toml").write_text(kept.replace(what, change))
        elif change == "gone":
            text.unlink()
        else:
            text.write_bytes(content + b"!" if change == "a byte more" else b"!" + content[1:])
        with outcome.one(f"{what}: {change}"):
            assert processes.run(["resume", run], folder / "log") == 2
            assert expected in processes.said(folder / "log"), processes.said(folder / "log")
            text.write_bytes(content)
            (run / "recipe.toml").write_text(kept)
            assert processes.run(["resume", run], folder / "log") == 0
            assert_same(run, whole)
        text.write_bytes(content)
        shutil.rmtree(run)
    return outcome


TEXTS = {
    "NULs": bytes(4_000),
    "all values": bytes(range(256)) * 20,
    "invalid UTF-8": b"\xff\xfe\x80" * 1_000,
    "half a character at every end": "é".encode()[:1] * 2_000,
    "CRLF": b"line\r\n" * 400,
    "CR only": b"line\r" * 400,
    "a BOM": b"\xef\xbb\xbf" + b"line\n" * 400,
    "UTF-16": "Grüße\n".encode("utf-16") * 300,
    "UTF-32": "Grüße\n".encode("utf-32") * 200,
    "one line": b"x" * 3_000,
    "only newlines": b"\n" * 3_000,
    "only spaces": b" " * 3_000,
    "exactly enough": make_text(1_024),
    "one byte more than a segment": make_text(1_025),
    "control characters": bytes(range(32)) * 100,
    "escape sequences": b"\x1b[31mred\x1b[0m\x07" * 300,
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈".encode() * 100,
    "right to left": "שלום עולם\u202e\n".encode() * 100,
    "a pickle": b"\x80\x04\x95" + bytes(2_000),
    "gzip's magic and no gzip": b"\x1f\x8b" + make_text(2_000),
}
REFUSED = {"empty": b"", "one byte": b"x", "a byte too few": b"x" * 1_023}


def odd_inputs(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 20: trained on, scored and measured; or refused with exit 2."""
    outcome, log = Outcome(), folder / "log"
    for name, content in list(TEXTS.items())[: max(1, count - 5)]:
        path, run = folder / f"{name}.txt", folder / "run"
        path.write_bytes(content)
        with outcome.one(name):
            for command in (["train", path, "--run", run, *SMALL], ["score", run, path, "--json"], ["evaluate", run]):
                assert processes.run(command, log) == 0, processes.said(log)
        shutil.rmtree(run, ignore_errors=True)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for name, content in REFUSED.items():
        (folder / name).write_bytes(content)
    for name in (*REFUSED, "folder", "pipe"):
        if outcome.tried == count:
            break
        with outcome.one(name):
            assert processes.run(["train", folder / name, "--run", folder / "run"], log) == 2
            said = processes.said(log)
            assert name in said and "Traceback" not in said and not (folder / "run").exists(), said
    return outcome


def sparse_file(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 20, the large one: a sparse file of `count` GB costs at most 500 MB more memory than a small one."""
    outcome, peaks = Outcome(), []
    for name, size in (("small", 1 << 20), ("large", count * 10**9)):
        with (folder / name).open("wb") as file:
            file.write(make_text(4_096))
            file.truncate(size)
        arguments = ["train", folder / name, "--run", folder / f"run-{name}", *SMALL]
        peak = folder / "peak"
        with outcome.one(name):
            assert processes.finish(processes.start(arguments, folder / "log", ("report_memory", str(peak))), 600) == 0
            peaks.append(int(peak.read_text()))
            assert peaks[-1] - peaks[0] < 500e6, f"{peaks[-1] - peaks[0]:,} bytes more"
        (folder / name).unlink()
    return outcome


def odd_places(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 28: run folders with odd names work, impossible ones are refused, a vanishing one ends in a sentence."""
    outcome, log, name_limit = Outcome(), folder / "log", 255
    works = (
        "with spaces and 'quotes'",
        "a\nnewline",
        "ünïcödé — 漢字 🏳️‍🌈",
        "-starts-with-a-hyphen",
        "ends with a dot.",
        "$HOME;rm -rf *",
        "x" * name_limit,
        "a/b/c/d/e",
    )
    (folder / "file").write_text("mine")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "dangling").symlink_to(folder / "nowhere" / "deep")
    refused = ("x" * (name_limit + 1), "file", "file/below", "loop", "/proc/headcount-run", "dangling/run")
    for name in works[:count]:
        with outcome.one(name[:40]):
            run = folder / "works" / name
            assert processes.run(["train", recipe, f"--run={run}", "--steps", "4"], log) == 0, processes.said(log)
            assert processes.run(["evaluate", run, "--limit", "50"], log) == 0, processes.said(log)
    for name in refused[: max(0, count - len(works))]:
        with outcome.one(name[:40]):
            assert processes.run(["train", recipe, "--run", folder / name, "--steps", "4"], log) == 2
            assert "Traceback" not in processes.said(log)
    if count > len(works) + len(refused):
        with outcome.one("vanishes while it is trained"):
            run = folder / "vanishes"
            process = processes.start(["train", recipe, "--run", run], log, ("slow", 0.1))
            while not (run / "checkpoints" / "00000004").exists():
                assert process.is_alive()
            shutil.rmtree(run, ignore_errors=True)
            code = processes.finish(process)
            assert code in (2, 3, 4), f"exit code {code}"
            assert "Traceback" not in processes.said(log) and "fault of ours" not in processes.said(log)
    return outcome

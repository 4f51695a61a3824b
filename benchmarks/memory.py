"""`make bench-memory`: memory does not grow with the text; writes docs/results/memory.md.

A synthetic text is made from a seed in a temporary folder: lines of words drawn by a Zipf law, shuffled again and
again, every second one with a number that occurs nowhere else. `headcount train` takes a few steps on it and on one of
2 MB, for each kind of token in a fresh process with an empty cache, so that hashing, learning the tokens and encoding
are all in it. The process and its children are looked at every few milliseconds:

- resident: all pages in the page tables, pages of mapped files and of libraries among them (a library that three
  processes share counts three times);
- anonymous: what is not backed by a file, which is what a system without swap cannot take back.

    python -m benchmarks.memory [--megabytes 2000]
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from headcount.learn.device import machine

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "memory.md"
SMALL, LARGE = 2, 2_000
LIMIT = 500
"""Megabytes that a large text may take more than the small one."""
BLOCK = 8_000_000
SECONDS_BETWEEN_LOOKS = 0.02
# The vocabularies are full on 2 MB already, so that both sizes train the same model.
KINDS = {
    "bytes": [],
    "characters": [],
    "wordpieces": ["tokens.vocabulary=2000"],
    "words": ["tokens.vocabulary=5000"],
}
SETTINGS = ["model.width=64", "model.blocks=2", "evaluate.limit=20000", "corpus.split=[0.9, 0.1]"]


def text(size: int, seed: int = 0) -> Iterator[bytes]:
    """A text of at least `size` bytes, a block at a time."""
    draw, shuffler = np.random.default_rng(seed), random.Random(seed)
    letters = list("etaoinshrdlucmfwygpbvk" * 9 + "äöüßéñж東")
    vocabulary = ["".join(draw.choice(letters, draw.integers(2, 10))) for _ in range(30_000)]
    chosen = np.minimum(draw.zipf(1.15, BLOCK // 6), len(vocabulary)) - 1
    lines = [" ".join(vocabulary[i] for i in row).encode() for row in chosen[: len(chosen) // 12 * 12].reshape(-1, 12)]
    made = number = 0
    while made < size:
        shuffler.shuffle(lines)
        block = []
        for line in lines:
            number += 1
            block.append(b"%s %d\n" % (line, number) if number % 2 else b"%s\n" % line)
        content = b"".join(block)[: size - made]
        made += len(content)
        yield content


@dataclass
class Peak:
    """The most that was seen, in megabytes."""

    resident: float = 0.0
    anonymous: float = 0.0
    alone: float = 0.0
    """Resident memory of the process without its children."""
    seconds: float = 0.0

    def look(self, process: int) -> None:
        """At a process and its children now."""
        found = [_memory(number) for number in [process, *_children(process)]]
        self.resident = max(self.resident, sum(resident for resident, _ in found))
        self.anonymous = max(self.anonymous, sum(anonymous for _, anonymous in found))
        self.alone = max(self.alone, found[0][0])


def _children(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += [int(number) for number in task.read_text().split()]
        except OSError:  # the thread has ended
            continue
    return found + [below for child in found for below in _children(child)]


def _memory(process: int) -> tuple[float, float]:
    """Resident and anonymous memory of a process, nothing if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    facts = dict(line.split(":", 1) for line in lines)
    resident, anonymous = (int(facts.get(name, "0").split()[0]) * 1024 / 1e6 for name in ("VmRSS", "RssAnon"))
    return resident, anonymous


def train(file: Path, kind: str) -> Peak:
    """A few steps in a fresh process with an empty cache."""
    peak, began = Peak(), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        sets = [part for one in (f"tokens.kind={kind}", *KINDS[kind], *SETTINGS) for part in ("--set", one)]
        command = [
            sys.executable,
            "-m",
            "headcount",
            "train",
            str(file),
            "--run",
            f"{folder}/run",
            "--steps",
            "5",
            *sets,
        ]
        with (Path(folder) / "said").open("wb") as said:
            process = subprocess.Popen(
                command, env={**os.environ, "HEADCOUNT_CACHE": f"{folder}/cache"}, stdout=said, stderr=said
            )
            while process.poll() is None:
                peak.look(process.pid)
                time.sleep(SECONDS_BETWEEN_LOOKS)
        if process.returncode:
            sys.exit((Path(folder) / "said").read_text())
    peak.seconds = time.perf_counter() - began
    return peak


def main() -> None:
    """Make the texts, train on them, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=LARGE)
    megabytes = parser.parse_args().megabytes
    rows, most = "", 0.0
    with tempfile.TemporaryDirectory() as name:
        files = {size: Path(name) / f"{size}.txt" for size in (SMALL, megabytes)}
        for size, file in files.items():
            with file.open("wb") as opened:
                opened.writelines(text(size * 10**6))
        for kind in KINDS:
            small, large = (train(file, kind) for file in files.values())
            more = large.resident - small.resident
            most = max(most, more)
            row = (
                f"| {kind} | {small.alone:.0f} | {large.alone:.0f} | {small.resident:.0f} | {large.resident:.0f} | "
                f"{small.anonymous:.0f} | {large.anonymous:.0f} | **{more:.0f}** | {large.seconds:.0f} |\n"
            )
            print(row, end="", flush=True)
            rows += row
    facts, workers = machine(), len(os.sched_getaffinity(0))
    RESULTS.write_text(
        "# Memory and the size of the text\n\n"
        f"Written by `make bench-memory` on {date.today()}: Python {platform.python_version()}, {facts['system']}, "
        f"{facts['processor']}, {facts['memory']}, {workers} of {facts['cores']} cores, and so many workers.\n"
        f"`headcount train` for five steps on a synthetic text of {megabytes:,} MB and on one of {SMALL} MB, with an "
        "empty cache: hashing,\nlearning the tokens and encoding them are in it. Peaks in MB, looked at every "
        f"{SECONDS_BETWEEN_LOOKS * 1000:.0f} ms. *Resident* holds the pages of mapped\nfiles and of libraries, which "
        "the system can take back at any time and which every process counts for itself;\n*anonymous* does not. "
        f"Wanted: less than {LIMIT} MB more resident memory, workers included.\n\n"
        f"| tokens | resident, without workers: {SMALL} MB | {megabytes:,} MB | with workers: {SMALL} MB | "
        f"{megabytes:,} MB | of which anonymous: {SMALL} MB | {megabytes:,} MB | more resident, with workers | "
        f"seconds of the {megabytes:,} MB |\n|---|---|---|---|---|---|---|---|---|\n{rows}"
    )
    sys.exit(most >= LIMIT)


if __name__ == "__main__":
    main()

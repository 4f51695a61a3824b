"""`make faults`: every row with the counts of the fault table; prints each figure and writes docs/results/faults.md."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import contextlib
import io
import json
import platform
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import torch

from tests.conftest import make_text, tiny_recipe_text
from tests.faults import corpora, damage, requests, stops

ROWS = (
    ("1, 27", "kill -9 at random moments; the log and the weights of the run that comes out", stops.kills, 200),
    ("2", "kill -9 at every call to the file system inside a save", stops.aimed_kills, 240),
    ("3", "resume, kinds of run × moments of the stop, to the bit", stops.exact_resumes, 30),
    ("4", "negative control: one part of a checkpoint is zeroed, and the run differs", stops.negative_controls, 7),
    ("5", "a disk that is full", damage.full_disks, 50),
    ("6", "a file of a checkpoint cut short", damage.truncations, 1_000),
    ("7", "one flipped bit in a checkpoint", damage.flips, 2_000),
    ("8", "files missing, swapped, empty, extra, cut, flipped: resume falls back", damage.missing_extra_swapped, 30),
    ("9", "hostile files where a model is expected", damage.hostile, 30),
    ("10", "pickles of other repositories; unpickling calls seen by an audit hook", damage.foreign, 10),
    ("11", "a loss or a gradient that is not finite", damage.not_finite, 100),
    (
        "15",
        "signals, once and twice, at every kind of moment, at random ones, with nobody reading what is said",
        stops.signals,
        100,
    ),
    ("16", "three processes begin one run", stops.double_starts, 50),
    ("17", "stale locks", stops.stale_locks, 20),
    ("18", "bad recipes", requests.bad_recipes, 120),
    ("19", "recipe or corpus changed between two parts of a run", requests.changed_between, 10),
    ("20", "odd texts", requests.odd_inputs, 25),
    ("20", "a sparse file of 10 GB, and one of 1 MB: less than 500 MB more memory", requests.sparse_file, 10),
    ("20", "one text however it is packed", corpora.packed_texts, 10),
    ("21", "downloads that break, lie, stall or change", corpora.broken_downloads, 15),
    ("21", "kill -9 while a corpus is fetched and unpacked", corpora.killed_downloads, 50),
    ("21", "kill -9 while a corpus is built from a dump", corpora.killed_builds, 50),
    ("22", "hostile and damaged archives", corpora.hostile_archives, 40),
    ("28", "odd, impossible and vanishing run folders", requests.odd_places, 15),
)
RESULTS = Path(__file__).parents[2] / "docs" / "results"
FILE = RESULTS / "faults.json"


def campaign(only: list[str]) -> dict[str, dict[str, object]]:
    """Every row by its function's name; failures go to standard error."""
    done = {}
    for number, what, function, count in ROWS:
        if only and number not in only and function.__name__ not in only:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "work"
            folder.mkdir()
            text, recipe = Path(name) / "my.txt", Path(name) / "tiny.toml"
            text.write_bytes(make_text(20_000))
            recipe.write_text(tiny_recipe_text(text))
            _forget(function.__name__)  # a row that breaks must not keep what it found another time
            began = time.perf_counter()
            with contextlib.redirect_stderr(io.StringIO()):  # what commands say inside this process
                outcome = function(folder, recipe, count)
            seconds = time.perf_counter() - began
        print(f"row {number}: {what}: {outcome.right}/{outcome.tried} in {seconds:.0f} s", flush=True)
        for wrong in outcome.wrong:
            print(f"    WRONG {wrong}", file=sys.stderr, flush=True)
        done[function.__name__] = {
            "row": number,
            "fault": what,
            "tried": outcome.tried,
            "right": outcome.right,
            "seconds": round(seconds),
            "date": date.today().isoformat(),
            "with": f"Python {platform.python_version()}, torch {torch.__version__}",
        }
        write(done)
    return done


def _forget(name: str) -> None:
    if FILE.exists():
        known = json.loads(FILE.read_text())
        known.pop(name, None)
        FILE.write_text(json.dumps(known, indent=1) + "\n")


def write(done: dict[str, dict[str, object]]) -> None:
    """The table, with what earlier campaigns found for rows that were not run now."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    known = {function.__name__: {**known, **done}.get(function.__name__) for _, _, function, _ in ROWS}
    known = {name: record for name, record in known.items() if record}
    RESULTS.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(known, indent=1) + "\n")
    columns = ("row", "fault", "tried", "right", "seconds", "date", "with")
    (RESULTS / "faults.md").write_text(
        "# The fault campaigns\n\n"
        f"Written by `make faults` on {platform.system()}, {os.cpu_count()} cores. Rows are those of the fault table; "
        "the code is\ntests/faults. Right means what the row promises: nothing lost, nothing silent, no traceback.\n"
        f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
        + "".join(f"| {' | '.join(str(record.get(c, '')) for c in columns)} |\n" for record in known.values())
    )


def main() -> None:
    """Run the rows; exit 1 if any went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="rows by number or by name")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    sys.exit(any(record["tried"] != record["right"] for record in campaign(only).values()))


if __name__ == "__main__":
    main()

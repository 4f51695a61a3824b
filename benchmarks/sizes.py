"""Which size suits which budget: runs of several sizes for 1 to 90 minutes on enwik8, and a law through them.

    python -m benchmarks.sizes enwik8.gz runs/sizes [--minutes 1 3 10]
    python -m benchmarks.sizes --elsewhere RUN …

Each run is an ordinary run in its own folder (`headcount train`), so that a session that ends early loses nothing:
what is finished is read, what is not is resumed. Then bits per byte are fitted by

    L(N, D) = E + A / N^α + B / D^β        N parameters, D bytes read

and the law, the sizes, their speeds and how far their runs lie from it are written to src/headcount/learn/sizes.json,
which `headcount train TEXT --minutes M` chooses from; docs/results/sizes.md shows every run beside what the law says.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headcount as hc
from benchmarks.trade import DESK_VARIANT
from benchmarks.trade import RECORDS as TRADES
from benchmarks.tune import DESK, WHOLE, varied
from benchmarks.tune import records as read_records
from headcount.learn.sizing import Law, Size, TimedSize, expected_after
from headcount.learn.sizing import table as shipped
from headcount.models.contract import count_parameters
from headcount.recipe import read

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src" / "headcount" / "learn" / "sizes.json"
RESULTS = ROOT / "docs" / "results"
RECORDS, ELSEWHERE = RESULTS / "sizes.jsonl", RESULTS / "sizes_elsewhere.jsonl"
TEXT = 90_000_000
"""Bytes of enwik8 that are learnt from."""


SIZES = (
    Size(width=128, window=128, lr=4e-3),
    Size(width=192, window=192, lr=4e-3),
    Size(width=256, window=256, lr=3e-3),
    Size(width=320, window=256, lr=3e-3),
    Size(width=448, window=256, lr=2.5e-3),
    Size(width=384, blocks=2, window=384, lr=2e-3),
)
RUNS = {1: SIZES[:3], 3: SIZES[1:4], 10: SIZES[2:5], 30: (SIZES[4], SIZES[5]), 90: (SIZES[4],)}
"""Minutes, and what is trained for them."""


LEAST_POWER, MOST_POWER = 0.2, 0.5
CORES = 2
"""Of the runs that speeds are taken from; a run on one core tells as much of learning."""


def name(size: Size) -> str:
    """For a folder."""
    return f"{size.blocks}x{size.width}-window{size.window}"


def measured(size: Size, minutes: float, corpus: str, folder: Path) -> dict[str, Any]:
    """Train a size for a budget, or go on with it, or read what it gave."""
    path = folder / f"{name(size)}-{minutes:g}min"
    varied = [f"{table}.{key}={value}" for table, keys in size.tables().items() for key, value in keys.items()]
    settings = [f"corpus.path={corpus}", *varied, "train.evaluate_every=100000", "train.save_every=1000"]
    if (path / "recipe.toml").exists():
        run = hc.resume(path)
    else:
        run = hc.train("recipes/desk/sha_rnn.toml", run=path, set=settings, minutes=minutes)
    steps = [event for event in run.events() if event["event"] == "step"]
    # The median step, so that what else the machine did for a while does not count.
    one_step = float(np.median(np.diff([step["seconds"] for step in steps])))
    figure = run.figures()[-1]
    return {
        **asdict(size),
        "minutes": minutes,
        "parameters": count_parameters(hc.load(path).model),
        "bytes": steps[-1]["bytes"],
        "seconds": one_step * len(steps),
        "cores": torch.get_num_threads(),
        "bits_per_byte": figure["value"],
        "date": date.today().isoformat(),
    }


def fit(records: list[dict[str, Any]]) -> dict[str, float]:
    """E, A, α, B, β by least squares: linear in three of them, the two powers by search.

    The powers are assumed to lie in a range: a handful of runs cannot tell them from the constant.
    """
    sizes = np.array([r["parameters"] for r in records], dtype=float)
    read = np.array([r["bytes"] for r in records], dtype=float)
    bits = np.array([r["bits_per_byte"] for r in records])
    best: tuple[float, dict[str, float]] = (np.inf, {})
    for alpha, beta in itertools.product(np.linspace(LEAST_POWER, MOST_POWER, 31), repeat=2):
        columns = np.stack([np.ones_like(bits), sizes**-alpha, read**-beta], axis=1)
        solution, *_ = np.linalg.lstsq(columns, bits, rcond=None)
        error = float(((columns @ solution - bits) ** 2).sum())
        if (solution >= 0).all() and error < best[0]:
            e, a, b = (float(value) for value in solution)
            best = (error, {"E": e, "A": a, "alpha": float(alpha), "B": b, "beta": float(beta)})
    return best[1]


def other_runs(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs of other pages that differ from the desk recipe only in what a size is: width, window, rate."""
    desk, found = varied(read(DESK)), []
    known = {(r["bytes"], r["bits_per_byte"]) for r in records}  # one run may stand on two pages
    for r in read_records(WHOLE):
        changed = {key for key, value in desk.items() if r["settings"].get(key, value) != value}
        if not r["note"] and changed <= {"model.width", "model.window", "optimiser.lr", "seed"}:
            found.append({**r, "width": r["settings"]["model.width"], "from": "tuning.md"})
    for r in read_records(TRADES):
        if r["variant"] == DESK_VARIANT:
            found.append({**r, "width": desk["model.width"], "from": "trade.md"})
    new = (r for r in found if (r["bytes"], r["bits_per_byte"]) not in known)
    return [{**r, "blocks": 1, "window": r.get("settings", desk)["model.window"]} for r in new]


def table_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What is shipped: the law of one block, and every size with its speed and how far its runs lie from the law."""
    learnt = [r for r in [*records, *other_runs(records)] if r["blocks"] == 1]
    fitted, sizes = fit(learnt), []
    law = Law(**fitted)
    for size in SIZES:
        own = [r for r in records if _is(r, size) and r["cores"] == CORES]
        if not own or size.blocks > 1:
            continue
        same = [r for r in learnt if r["width"] == size.width]
        timed = TimedSize(
            **asdict(size),
            parameters=own[0]["parameters"],
            seconds_per_byte=float(np.median([r["seconds"] / r["bytes"] for r in own])),
            above_law=float(np.mean([r["bits_per_byte"] - law(r["parameters"], r["bytes"], TEXT) for r in same])),
        )
        sizes.append(asdict(timed))
    reads = [r["bytes"] for r in learnt]
    return {"law": fitted, "read": [min(reads), max(reads)], "sizes": sizes}


def write(records: list[dict[str, Any]]) -> None:
    """The table that is shipped, and the page that shows it; two blocks are shown, but did not pay."""
    table = table_of(records)
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    law, above = table["law"], {size["width"]: size["above_law"] for size in table["sizes"]}
    lines = [
        "# Sizes by budget",
        "",
        f"Written by `python -m benchmarks.sizes` on {date.today().isoformat()}; records in `sizes.jsonl`. enwik8,",
        "`carried` on the first 262,144 bytes of the validation split. What is chosen is a width, and with it a window",
        "and a rate. All have 8 streams in segments of 128 and a Boom of 4: in trials of a few minutes (tuning.md)",
        "nothing else paid. Windows above 256 lose for half an hour and more, and gain after an hour (trade.md): no",
        "size of the table has one yet. Seconds are the median step times the steps, on so many cores of several",
        "machines; the table's speeds are those of the runs with minutes and two cores, of one machine.",
        f"Powers are searched from {LEAST_POWER} to {MOST_POWER}: so few runs cannot tell them from the constant. The",
        "law is of one block; two have not paid yet, and are shown to say so. What is expected of a size is the law",
        "and what its own runs are above it on the average: "
        + ", ".join(f"{width}: {bits:+.3f}" for width, bits in above.items())
        + ".",
        "",
        f"L(N, D) = {law['E']:.3f} + {law['A']:.4g}/N^{law['alpha']:.2f} + {law['B']:.4g}/D^{law['beta']:.2f}",
        "",
        "| minutes | blocks × width | window | parameters | bytes read | seconds | cores | bits | the law | expected |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    shown = [*records, *({"minutes": math.inf, "cores": "", **r} for r in other_runs(records))]
    for r in sorted(shown, key=lambda r: (r["minutes"], r["bytes"])):
        says = Law(**law)(r["parameters"], r["bytes"], TEXT)
        expected = f"{says + above[r['width']]:.4f}" if r["blocks"] == 1 else ""
        lines.append(
            f"| {r.get('from') or format(r['minutes'], 'g')} | {r['blocks']} × {r['width']} | {r['window']} "
            f"| {r['parameters']:,} | {r['bytes']:,} | {r.get('seconds', math.nan):,.0f} | {r['cores']} "
            f"| {r['bits_per_byte']:.4f} | {says:.4f} | {expected} |".replace("| nan |", "|  |")
        )
    (RESULTS / "sizes.md").write_text("\n".join([*lines, *elsewhere()]) + "\n")


def add_elsewhere(path: Path) -> None:
    """Keep what `headcount train TEXT --minutes M` came to on a text that the law was not fitted to."""
    run = hc.Run(path)
    last = [event for event in run.events() if event["event"] == "step"][-1]
    size = next(size for size in shipped()[1] if size.width == run.recipe.model["width"])
    found = {
        "text": Path(run.recipe.corpus.path).name,
        "width": size.width,
        "bytes": last["bytes"],
        "seconds": last["seconds"],
        "expected": expected_after(size, last["bytes"], Path(run.recipe.corpus.path).stat().st_size),
        "bits_per_byte": run.figures()[-1]["value"],
        "date": date.today().isoformat(),
    }
    with ELSEWHERE.open("a") as lines:
        lines.write(json.dumps(found) + "\n")


def elsewhere() -> list[str]:
    """The section of texts that the law was not fitted to."""
    lines = [
        "",
        "## Texts that it was not fitted to",
        "",
        "`headcount train TEXT --minutes M`, then `python -m benchmarks.sizes --elsewhere RUN`. What is expected",
        "supposes that the text is like enwik8, so the difference says as much of the text as of the law.",
        "",
        "| text | width | bytes read | seconds of steps | expected | came to | date |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in read_records(ELSEWHERE):
        lines.append(
            f"| {r['text']} | {r['width']} | {r['bytes']:,} | {r['seconds']:,.0f} | {r['expected']:.3f} "
            f"| {r['bits_per_byte']:.3f} | {r['date']} |"
        )
    return lines if read_records(ELSEWHERE) else []


def _is(record: dict[str, Any], size: Size) -> bool:
    return all(record[key] == value for key, value in asdict(size).items())


def main() -> None:
    """Run what has no record yet, then fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", help="enwik8, as it is or compressed")
    parser.add_argument("folder", nargs="?", type=Path, help="where the runs are kept")
    parser.add_argument("--minutes", type=float, nargs="*", default=list(RUNS), help="only these budgets")
    parser.add_argument("--elsewhere", type=Path, nargs="*", default=[], help="runs of `train TEXT --minutes M` to add")
    arguments = parser.parse_args()
    for path in arguments.elsewhere:
        add_elsewhere(path)
    for minutes, size in ((m, s) for m in arguments.minutes for s in RUNS[m] if arguments.corpus):
        if any(r["minutes"] == minutes and _is(r, size) for r in read_records(RECORDS)):
            continue
        found = measured(size, minutes, arguments.corpus, arguments.folder)
        with RECORDS.open("a") as lines:
            lines.write(json.dumps(found) + "\n")
    write(read_records(RECORDS))


if __name__ == "__main__":
    main()

"""Which size suits which budget: runs of several sizes for 1 to 90 minutes on enwik8, and a law through them.

    python -m benchmarks.sizes enwik8.gz runs/sizes [--minutes 1 3 10]

Each run is an ordinary run in its own folder (`headcount train`), so that a session that ends early loses nothing:
what is finished is read, what is not is resumed. Then bits per byte are fitted by

    L(N, D) = E + A / N^α + B / D^β        N parameters, D bytes read

and the law, the sizes and their speeds are written to src/headcount/learn/sizes.json, which `headcount train TEXT
--minutes M` chooses from; docs/results/sizes.md shows every run beside what the law says of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headcount as hc
from headcount.learn.sizing import Size, TimedSize
from headcount.models.contract import count_parameters

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src" / "headcount" / "learn" / "sizes.json"
RESULTS = ROOT / "docs" / "results"


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


def write(records: list[dict[str, Any]]) -> None:
    """The table that is shipped, and the page that shows it; two blocks are shown, but did not pay."""
    law = fit([r for r in records if r["blocks"] == 1])
    sizes = []
    for size in SIZES:
        own = [r for r in records if _is(r, size) and r["cores"] == CORES]
        if own and size.blocks == 1:
            speed = float(np.median([r["seconds"] / r["bytes"] for r in own]))
            sizes.append(asdict(TimedSize(**asdict(size), parameters=own[0]["parameters"], seconds_per_byte=speed)))
    TABLE.write_text(json.dumps({"law": law, "sizes": sizes}, indent=1) + "\n")
    lines = [
        "# Sizes by budget",
        "",
        f"Written by `python -m benchmarks.sizes` on {date.today().isoformat()}; records in `sizes.jsonl`. enwik8, one",
        "seed, `carried` on the first 262,144 bytes of the validation split. All have 8 streams in segments of 128 and",
        "a Boom of 4: nothing else paid in the trials. Seconds are the median step times the steps, on so many cores.",
        f"Powers are searched from {LEAST_POWER} to {MOST_POWER}: so few runs cannot tell them from the constant. The",
        "law is of one block; two have not paid yet, and are shown to say so.",
        "",
        f"L(N, D) = {law['E']:.3f} + {law['A']:.4g}/N^{law['alpha']:.2f} + {law['B']:.4g}/D^{law['beta']:.2f}",
        "",
        "| minutes | blocks × width | window | parameters | bytes read | seconds | cores | bytes/s | bits | the law |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in sorted(records, key=lambda r: (r["minutes"], r["parameters"])):
        says = law["E"] + law["A"] / r["parameters"] ** law["alpha"] + law["B"] / r["bytes"] ** law["beta"]
        lines.append(
            f"| {r['minutes']:g} | {r['blocks']} × {r['width']} | {r['window']} | {r['parameters']:,} | {r['bytes']:,} "
            f"| {r['seconds']:,.0f} | {r['cores']} | {r['bytes'] / r['seconds']:,.0f} "
            f"| {r['bits_per_byte']:.4f} | {says:.4f} |"
        )
    (RESULTS / "sizes.md").write_text("\n".join(lines) + "\n")


def _is(record: dict[str, Any], size: Size) -> bool:
    return all(record[key] == value for key, value in asdict(size).items())


def main() -> None:
    """Run what has no record yet, then fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="enwik8, as it is or compressed")
    parser.add_argument("folder", type=Path, help="where the runs are kept")
    parser.add_argument("--minutes", type=float, nargs="*", default=list(RUNS), help="only these budgets")
    arguments = parser.parse_args()
    file = RESULTS / "sizes.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for minutes in arguments.minutes:
        for size in RUNS[minutes]:
            if any(r["minutes"] == minutes and _is(r, size) for r in records):
                continue
            records.append(measured(size, minutes, arguments.corpus, arguments.folder))
            with file.open("a") as lines:
                lines.write(json.dumps(records[-1]) + "\n")
            if len(records) >= 5:
                write(records)


if __name__ == "__main__":
    main()

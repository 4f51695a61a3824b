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
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount.models.contract import count_parameters

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "src" / "headcount" / "learn" / "sizes.json"
RESULTS = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Size:
    """What is varied; the rest is the desk recipe's."""

    width: int
    blocks: int
    window: int
    lr: float
    streams: int = 8
    segment: int = 128

    @property
    def name(self) -> str:
        """For a folder."""
        return f"{self.blocks}x{self.width}-window{self.window}"

    def settings(self) -> list[str]:
        """As `--set` takes them: the head sits in the last block but one, or in the only one."""
        return [
            f"model.width={self.width}",
            f"model.blocks={self.blocks}",
            f"model.attention=[{max(0, self.blocks - 2)}]",
            f"model.window={self.window}",
            f"optimiser.lr={self.lr}",
            f"batches.streams={self.streams}",
            f"batches.segment={self.segment}",
        ]


SIZES = {
    "128": Size(128, 1, 128, 4e-3),
    "192": Size(192, 1, 192, 4e-3),
    "256": Size(256, 1, 256, 3e-3),
    "320": Size(320, 1, 256, 3e-3),
    "448": Size(448, 1, 256, 2.5e-3),
    "2x384": Size(384, 2, 384, 2e-3),
    "2x512": Size(512, 2, 512, 2e-3),
}
RUNS = {
    1: ("128", "192", "256"),
    3: ("192", "256", "320"),
    10: ("256", "320", "448"),
    30: ("320", "448", "2x384"),
    90: ("2x512",),
}


def measured(size: Size, minutes: float, corpus: str, folder: Path) -> dict[str, Any]:
    """Train a size for a budget, or go on with it, or read what it gave."""
    path = folder / f"{size.name}-{minutes:g}min"
    settings = [f"corpus.path={corpus}", *size.settings(), "train.evaluate_every=100000", "train.save_every=1000"]
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
        "bits_per_byte": figure["value"],
        "date": date.today().isoformat(),
    }


def fit(records: list[dict[str, Any]]) -> dict[str, float]:
    """E, A, α, B, β by least squares: linear in three of them, the two powers by search."""
    sizes = np.array([r["parameters"] for r in records], dtype=float)
    read = np.array([r["bytes"] for r in records], dtype=float)
    bits = np.array([r["bits_per_byte"] for r in records])
    best: tuple[float, dict[str, float]] = (np.inf, {})
    for alpha, beta in itertools.product(np.linspace(0.1, 0.8, 36), np.linspace(0.1, 0.8, 36)):
        columns = np.stack([np.ones_like(bits), sizes**-alpha, read**-beta], axis=1)
        solution, *_ = np.linalg.lstsq(columns, bits, rcond=None)
        error = float(((columns @ solution - bits) ** 2).sum())
        if (solution >= 0).all() and error < best[0]:
            e, a, b = (float(value) for value in solution)
            best = (error, {"E": e, "A": a, "alpha": float(alpha), "B": b, "beta": float(beta)})
    return best[1]


def write(records: list[dict[str, Any]]) -> None:
    """The table that is shipped, and the page that shows it."""
    law = fit(records)
    speeds: dict[str, list[float]] = {}
    for r in records:
        speeds.setdefault(Size(**{k: r[k] for k in Size.__dataclass_fields__}).name, []).append(
            r["seconds"] / r["bytes"]
        )
    sizes = [
        {
            **asdict(size),
            "parameters": next(r["parameters"] for r in records if _is(r, size)),
            "seconds_per_byte": float(np.median(speeds[size.name])),
        }
        for size in SIZES.values()
        if size.name in speeds
    ]
    TABLE.write_text(json.dumps({"law": law, "sizes": sizes}, indent=1) + "\n")
    lines = [
        "# Sizes by budget",
        "",
        f"Written by `python -m benchmarks.sizes` on {date.today().isoformat()}; records in `sizes.jsonl`. enwik8, one",
        "seed, `carried` on the first 262,144 bytes of the validation split, two cores.",
        "",
        f"L(N, D) = {law['E']:.3f} + {law['A']:.4g}/N^{law['alpha']:.2f} + {law['B']:.4g}/D^{law['beta']:.2f}",
        "",
        "| minutes | blocks × width | window | parameters | bytes read | bytes/s | bits per byte | the law says |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in sorted(records, key=lambda r: (r["minutes"], r["parameters"])):
        says = law["E"] + law["A"] / r["parameters"] ** law["alpha"] + law["B"] / r["bytes"] ** law["beta"]
        lines.append(
            f"| {r['minutes']:g} | {r['blocks']} × {r['width']} | {r['window']} | {r['parameters']:,} | {r['bytes']:,} "
            f"| {r['bytes'] / r['seconds']:,.0f} | {r['bits_per_byte']:.4f} | {says:.4f} |"
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
    for minutes, names in RUNS.items():
        for name in names:
            if minutes not in arguments.minutes or any(
                r["minutes"] == minutes and _is(r, SIZES[name]) for r in records
            ):
                continue
            records.append(measured(SIZES[name], minutes, arguments.corpus, arguments.folder))
            with file.open("a") as lines:
                lines.write(json.dumps(records[-1]) + "\n")
            if len(records) >= 5:
                write(records)


if __name__ == "__main__":
    main()

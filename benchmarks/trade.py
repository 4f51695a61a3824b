"""How head, window and depth trade as the budget grows: variants of the desk recipe, the same work for each.

    python -m benchmarks.trade enwik8.gz runs/trade [--budget 2000 23603 75000] [--only NAME …]

A budget is work: the time of so many steps of `recipes/desk/sha_rnn.toml` (23,603 are what ten minutes on two cores
of the fast machine gave, 75,000 an hour of one of them, with another training on the other). What a variant's step
costs is timed against the desk recipe's in one interleaved run before it, so a budget is the same on any machine, quiet
or not. Every run is an ordinary run in its own folder: one that was cut goes on. Records in docs/results/trade.jsonl,
the page is docs/results/trade.md.
"""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

import headcount as hc
from benchmarks.tune import DESK, RESULTS, records, relative_cost
from headcount.learn import device as devices
from headcount.learn.plan import settle
from headcount.learn.trainer import Learner
from headcount.recipe import read

RECORDS = RESULTS / "trade.jsonl"
VARIANTS = {
    "one head, window 256": (),
    "no head": ("model.attention=[]",),
    "window 64": ("model.window=64",),
    "window 1,024": ("model.window=1024",),
    "two blocks, head in the second": ("model.blocks=2", "model.attention=[1]"),
}
DESK_VARIANT = next(iter(VARIANTS))
BUDGETS = (2_000, 23_603, 75_000)


def cost_of(settings: tuple[str, ...], corpus: str) -> float:
    """A step's time over the desk recipe's, timed in turn."""
    device = devices.choose("cpu")
    given = f"corpus.path={corpus}"
    with device.own_generators():
        desk, variant = (
            Learner(settle(read(DESK, (given, *changes)), print, minutes=True), device) for changes in ((), settings)
        )
        return relative_cost(desk, variant)


def measured(name: str, budget: int, corpus: str, folder: Path) -> dict[str, Any]:
    """Train a variant for a budget, or go on with it, or read what it gave."""
    settings = VARIANTS[name]
    path = folder / f"{name.replace(' ', '_').replace(',', '')}-{budget}"
    if (path / "recipe.toml").exists():
        run = hc.resume(path)
        cost = budget / run.recipe.train.steps
    else:
        cost = cost_of(settings, corpus) if settings else 1.0
        steps = round(budget / cost)
        every = [f"train.evaluate_every={-(-steps // 4)}", "seed=2"]
        run = hc.train(DESK, run=path, set=[f"corpus.path={corpus}", *settings, *every], steps=steps)
    evaluated = [event for event in run.events() if event["event"] == "evaluated"]
    last = [event for event in run.events() if event["event"] == "step"][-1]
    return {
        "variant": name,
        "budget": budget,
        "cost": cost,
        "steps": last["step"],
        "bytes": last["bytes"],
        "parameters": run.figures()[-1]["model"]["parameters"],
        "course": [event["bits_per_byte"] for event in evaluated],
        "bits_per_byte": evaluated[-1]["bits_per_byte"],
        "date": date.today().isoformat(),
    }


def write_page(found: list[dict[str, Any]]) -> None:
    """docs/results/trade.md: the last figures by budget, then the course of the longest runs."""
    by_key = {(r["variant"], r["budget"]): r for r in found}
    budgets = sorted({r["budget"] for r in found})
    lines = [
        "# Head, window and depth, as the budget grows",
        "",
        "Written by `python -m benchmarks.trade enwik8.gz runs/trade`; records in `trade.jsonl`. enwik8, one seed (2),",
        "`carried` on the first 262,144 bytes of the validation split, variants of `recipes/desk/sha_rnn.toml`. All in",
        "a column cost the same work: the time of so many steps of the desk recipe (23,603: ten minutes on two cores;",
        "75,000: an hour on one, of a machine of two).",
        "In brackets what a variant gains (-) or loses (+) against the desk recipe at that budget; two seeds of the",
        "trials' base were 0.015 apart after 2,000 steps (tuning.md), three of the recipe 0.0023 after ten",
        "minutes (comparison.md).",
        "",
        "| variant | parameters | cost of a step | " + " | ".join(f"{budget:,} steps" for budget in budgets) + " |",
        "|---|---|---|" + "---|" * len(budgets),
    ]
    for name in VARIANTS:
        own = [by_key.get((name, budget)) for budget in budgets]
        known = next((r for r in reversed(own) if r), None)
        if known is None:
            continue
        cells = []
        for budget, r in zip(budgets, own, strict=True):
            desk = by_key.get((DESK_VARIANT, budget))
            apart = f" ({r['bits_per_byte'] - desk['bits_per_byte']:+.3f})" if r and desk and r is not desk else ""
            cells.append(f"{r['bits_per_byte']:.4f}{apart}" if r else "")
        lines.append(f"| {name} | {known['parameters']:,} | {known['cost']:.2f} | {' | '.join(cells)} |")
    longest = [r for r in found if r["budget"] == budgets[-1]]
    lines += [
        "",
        f"The course of the runs of {budgets[-1]:,} steps, by share of the work (the same schedule for all):",
        "",
    ]
    shares = range(1, len(longest[0]["course"]) + 1)
    lines += ["| variant | " + " | ".join(f"{i}/{len(shares)}" for i in shares) + " |", "|---|" + "---|" * len(shares)]
    for r in sorted(longest, key=lambda r: r["bits_per_byte"]):
        lines.append(f"| {r['variant']} | {' | '.join(f'{bits:.3f}' for bits in r['course'])} |")
    (RESULTS / "trade.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run what has no record yet, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="enwik8, as it is or compressed")
    parser.add_argument("folder", type=Path, help="where the runs are kept")
    parser.add_argument("--budget", type=int, nargs="*", default=list(BUDGETS), help="in steps of the desk recipe")
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), help="variants by name")
    arguments = parser.parse_args()
    for budget in arguments.budget:
        for name in arguments.only:
            if any((r["variant"], r["budget"]) == (name, budget) for r in records(RECORDS)):
                continue
            found = measured(name, budget, arguments.corpus, arguments.folder)
            with RECORDS.open("a") as lines:
                lines.write(json.dumps(found) + "\n")
            write_page(records(RECORDS))


if __name__ == "__main__":
    main()

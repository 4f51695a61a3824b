"""The three models side by side: ten minutes each on enwik8, by the desk recipes, several seeds.

    headcount train recipes/desk/MODEL.toml --set corpus.path=enwik8.gz --set seed=S --minutes 10 --run RUN
    headcount evaluate RUN --split test [--protocol sliding-16 and --protocol carried for the character Transformer]
    python -m benchmarks.comparison RUN …

Runs that have ended, with the figures that were measured on them, become records in docs/results/comparison.jsonl,
known by their weights, and docs/results/comparison.md shows them: every run, and for every model the mean over its
seeds. A record keeps every figure with how it was measured; the page shows those that were measured as it says, of
runs of the desk recipes as they are now.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.tune import RECIPES, RESULTS, as_now, varied
from headcount.learn.run import Run
from headcount.models import configure
from headcount.recipe import Recipe, read

RECORDS = RESULTS / "comparison.jsonl"
NAMES = {"sha-rnn": "SHA-RNN", "transformer-xl": "Transformer-XL", "char-transformer": "character Transformer"}


def record(path: Path) -> dict[str, Any]:
    """What a run is worth, and what it cost."""
    run = Run.existing(path)
    events = run.events()
    last = [event for event in events if event["event"] == "step"][-1]
    ended = [event for event in events if event["event"] == "finished"][-1]
    begun = next(event for event in events if event["event"] == "started")
    best = run.best()
    figures = [figure for figure in run.figures() if figure["model"]["step"] == best]
    _, config = configure(run.recipe.model, run.tokens.vocabulary)
    return {
        "model": run.recipe.model["kind"],
        "seed": run.recipe.seed,
        "settings": settings(run.recipe),
        "weights": figures[0]["model"]["sha256"],
        "parameters": figures[0]["model"]["parameters"],
        "steps": last["step"],
        "bytes": last["bytes"],
        "seconds": last["seconds"],
        "memory": ended["memory"],
        "threads": begun["fingerprint"]["threads"],
        "figures": [
            {
                "split": f["corpus"]["split"],
                "bytes": f["bytes"],
                "protocol": f["protocol"]["name"],
                "how": {key: fact for key, fact in f["protocol"].items() if key != "name"},
                "as_the_page_says": as_the_page_says(f["protocol"], config),
                "value": f["value"],
            }
            for f in figures
        ],
        "date": figures[0]["date"][:10],
    }


def settings(recipe: Recipe) -> dict[str, Any]:
    """What a model is and learns by, seed aside."""
    return {key: value for key, value in varied(recipe).items() if key != "seed"}


def by_the_recipe(found: dict[str, Any]) -> bool:
    """Whether a run had the desk recipe of its model as it is now."""
    desk = settings(read(RECIPES / f"{found['model'].replace('-', '_')}.toml"))
    had = as_now(found["model"], found["settings"])
    del had["seed"]
    return had == desk


def as_the_page_says(protocol: dict[str, Any], config: Any) -> bool:
    """Whether a figure has the model's own window or context and clamp, every byte, and a quarter of it as stride."""
    own = getattr(config, "window", None) or config.context
    lengths = protocol["window"] or protocol.get("restarts_after"), protocol.get("clamp")
    return (
        (protocol["streams"], protocol["not_scored"]) == (1, 0)
        and lengths == (own, getattr(config, "clamp", None))
        and protocol.get("stride", own // 4) == own // 4
        and "curve" not in protocol
    )


def value(found: dict[str, Any], split: str, carried: bool) -> float | None:
    """The figure of a split on the most bytes, by carried state or by sliding windows, as the page says."""
    own = [f for f in found["figures"] if f["split"] == split and (f["protocol"] == "carried") == carried]
    own = [f for f in own if f.get("as_the_page_says", True)]  # the first records had no others
    return max(own, key=lambda f: f["bytes"])["value"] if own else None


def figure_cells(found: list[dict[str, Any]]) -> str:
    """Test by carried state and by sliding windows: the mean, and from where to where."""
    cells = []
    for carried in (True, False):
        values = [v for r in found if (v := value(r, "test", carried)) is not None]
        spread = f" ({min(values):.4f} – {max(values):.4f})" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.4f}{spread}" if values else "")
    return " | ".join(cells)


def write_page(found: list[dict[str, Any]]) -> None:
    """docs/results/comparison.md."""
    head = "parameters | bytes read | cores | seconds | bytes/s | memory, MiB | test, carried | test, sliding |"
    lines = [
        "# Three models, ten minutes each",
        "",
        "Written by `python -m benchmarks.comparison RUN …` from runs of `recipes/desk/*.toml` on enwik8 with",
        "`--minutes 10` on two cores, or with the steps of such a run on one; records in `comparison.jsonl`. Seconds,",
        "speed and memory are of the runs on the most cores: runs on fewer had others beside them, so that their own",
        "say nothing and are left out. Bits per byte on the whole test split, 5,000,000 bytes, every byte scored: the",
        "mean over seeds, and from where to where. Carried: one stream, segments of 512, state carried; the character",
        "Transformer begins anew whenever its context is full. Sliding: windows of its context, a quarter of it apart,",
        "each read anew.",
        "",
        f"| model | seeds | {head}",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    by_model = {kind: [r for r in found if r["model"] == kind] for kind in NAMES}
    rows = {kind: seeds(own) for kind, own in by_model.items() if own}
    for kind, own in rows.items():
        lines.append(_row(NAMES[kind], f"{len(own)}: {', '.join(str(r['seed']) for r in own)}", own, _cores(own)))
    lines += ["", f"Run by run:\n\n| model | seed | {head} weights | date |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for kind, own in rows.items():
        for r in sorted(by_model[kind], key=lambda r: (r not in own, r["seed"])):
            mark = "" if r in own else " (other steps: not above)"
            lines.append(
                f"{_row(NAMES[kind] + mark, str(r['seed']), [r], _cores(own))} {r['weights'][:12]} | {r['date']} |"
            )
    (RESULTS / "comparison.md").write_text("\n".join(lines) + "\n")


def seeds(own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs that differ in nothing but the seed: with as many steps as the last that had the most cores."""
    steps = [r["steps"] for r in own if r["threads"] == _cores(own)][-1]
    return sorted((r for r in own if r["steps"] == steps), key=lambda r: r["seed"])


def _cores(own: list[dict[str, Any]]) -> int:
    """The most that a run of these had."""
    return max(int(r["threads"]) for r in own)


def _row(name: str, seeds: str, own: list[dict[str, Any]], cores: int) -> str:
    """Of some runs; seconds, speed and memory of those that had so many cores."""
    read, timed = statistics.mean(r["bytes"] for r in own), [r for r in own if r["threads"] == cores]
    cells = [name, seeds, f"{own[0]['parameters']:,}", f"{read:,.0f}", f"{_cores(own)}"]
    if timed:
        cells += [f"{statistics.mean(r['seconds'] for r in timed):,.0f}"]
        cells += [f"{statistics.mean(r['bytes'] / r['seconds'] for r in timed):,.0f}"]
        cells += [f"{max(r['memory'] for r in timed) / 2**20:,.0f}"]
    else:
        cells += ["", "", ""]
    return f"| {' | '.join(cells)} | {figure_cells(own)} |"


def main() -> None:
    """Add runs, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", help="finished runs of the desk recipes, measured on test")
    kept = [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    by_weights = {r["weights"]: r for r in kept}
    for path in parser.parse_args().runs:
        found = record(path)
        by_weights[found["weights"]] = found
    RECORDS.write_text("".join(json.dumps(r) + "\n" for r in by_weights.values()))
    write_page([found for found in by_weights.values() if by_the_recipe(found)])


if __name__ == "__main__":
    main()

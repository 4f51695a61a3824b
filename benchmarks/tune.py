"""What learns fastest in minutes: trials of the desk recipe on enwik8, every one a row of docs/results/tuning.md.

    python -m benchmarks.tune enwik8.gz [--model KIND] [--only NAME …]
    python -m benchmarks.tune --runs DIR …

All trials have the same seed, the same training stream, the same validation bytes, and the same budget of *work*: the
time of so many steps of the base. What a step of an architecture costs is timed against the base in one interleaved
run when it is first tried, so that a busy machine slows both alike, and holds for all of its trials, which then have as
many steps as each other. Trials that have a record in docs/results/tuning.jsonl are not run again.

What wins in three minutes need not win in ten: `--runs` adds whole runs of the desk recipes (`headcount train
recipes/desk/MODEL.toml --minutes 10 --set …`) to the page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.trials import BASES, TRIALS, Trial
from headcount.learn import device as devices
from headcount.learn.malloc import keep_freed_memory
from headcount.learn.plan import Plan, settle
from headcount.learn.run import Run
from headcount.learn.trainer import Learner
from headcount.measure.protocols import measure
from headcount.models import configure
from headcount.models.contract import count_parameters
from headcount.recipe import Recipe, from_dict, read

RESULTS = Path(__file__).parent.parent / "docs" / "results"
RECORDS, WHOLE = RESULTS / "tuning.jsonl", RESULTS / "tuning_runs.jsonl"
RECIPES = Path(__file__).parent.parent / "recipes" / "desk"
DESK = RECIPES / "sha_rnn.toml"
SHORT_TRIAL = 2_000
"""Base steps that most trials have."""
TIMED = 40
"""Steps of base and trial that are timed in turn."""


def plan_of(trial: Trial, corpus: str) -> Plan:
    """The settled plan of a trial; the number of steps comes later."""
    return settle(from_dict(BASES[trial.model], (f"corpus.path={corpus}", *trial.settings)), print, minutes=True)


def relative_cost(base: Learner, trial: Learner) -> float:
    """Seconds of a trial's step over seconds of a base step: medians, interleaved, memories full."""
    times: dict[int, list[float]] = {0: [], 1: []}
    for step in range(TIMED + 4):
        for which, learner in enumerate((base, trial)):
            began = time.perf_counter()
            learner.learn(step, TIMED + 4)
            if step >= 4:
                times[which].append(time.perf_counter() - began)
    return statistics.median(times[1]) / statistics.median(times[0])


FREE = ("optimiser.lr", "optimiser.betas", "optimiser.clip", "optimiser.weight_decay", "schedule.", "seed", "evaluate.")
"""Settings that change what a step does, not what it costs."""


def architecture(trial: Trial) -> str:
    """What decides about the cost of a step."""
    changed = dict(setting.split("=", 1) for setting in trial.settings)
    kept = sorted(f"{key}={value}" for key, value in changed.items() if not key.startswith((*FREE, "model.init")))
    return " ".join([trial.model, *kept, *([trial.name] if trial.change else [])])


def run(trial: Trial, corpus: str) -> dict[str, Any]:
    """Train a trial for its budget and measure it."""
    device = devices.choose("cpu")
    plan = plan_of(trial, corpus)
    known = [r["cost_of_a_step"] for r in records() if r.get("architecture") == architecture(trial)]
    with device.own_generators():
        timed, learner = Learner(plan, device), Learner(plan, device)
        if trial.change is not None:
            trial.change(timed.model)
            trial.change(learner.model)
        cost = known[0] if known else relative_cost(Learner(plan_of(TRIALS[0], corpus), device), timed)
        steps = round(trial.budget / cost)
        began = time.perf_counter()
        read = sum(learner.learn(step, steps)["bytes"] for step in range(steps))
        seconds = time.perf_counter() - began
        measured = measure(learner.model, plan.held_out, plan.recipe.evaluate, split="valid")
    return {
        "trial": trial.name,
        "model": trial.model,
        "architecture": architecture(trial),
        "head": "open",
        "budget": trial.budget,
        "bits_per_byte": measured.bits_per_byte,
        "parameters": count_parameters(learner.model),
        "cost_of_a_step": cost,
        "steps": steps,
        "bytes": read,
        "seconds": seconds,
        "settings": list(trial.settings),
        "date": date.today().isoformat(),
    }


def varied(recipe: Recipe) -> dict[str, Any]:
    """What trials vary, by `table.key`, defaults included."""
    whole = recipe.to_dict()
    whole["model"] = asdict(configure(whole["model"], 256)[1])
    del whole["model"]["recompute"]  # it changes nothing but memory
    tables = ("model", "batches", "optimiser", "schedule")
    named = {f"{table}.{key}": value for table in tables for key, value in whole[table].items()}
    return {"seed": recipe.seed, **json.loads(json.dumps(named))}


def whole_run(path: Path, note: str) -> dict[str, Any]:
    """The record of a run that has ended; `note` says what its recipe cannot."""
    run = Run.existing(path)
    steps = [event for event in run.events() if event["event"] == "step"]
    figure = [f for f in run.figures() if f["corpus"]["split"] == "valid"][-1]
    test = [f for f in run.figures() if f["corpus"]["split"] == "test" and how(f) == how(figure)]
    return {
        "model": run.recipe.model["kind"],
        "bits_per_byte": figure["value"],
        "test": max(test, key=lambda f: f["bytes"])["value"] if test else None,
        "weights": figure["model"]["sha256"],
        "parameters": figure["model"]["parameters"],
        "steps": len(steps),
        "bytes": steps[-1]["bytes"],
        "seconds": steps[-1]["seconds"],
        "settings": varied(run.recipe),
        "note": note,
        "date": figure["date"][:10],
    }


def how(figure: dict[str, Any]) -> list[Any]:
    """What two figures must have in common to stand in one row."""
    return [figure["protocol"].get(key) for key in ("name", "streams", "segment", "window", "clamp", "stride", "curve")]


def records(file: Path = RECORDS) -> list[dict[str, Any]]:
    """What was found so far."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def whole_runs() -> list[str]:
    """The sections of whole runs, one for each model that has any."""
    lines = []
    for model in BASES:
        file = RECIPES / f"{model.replace('-', '_')}.toml"
        found = [r for r in records(WHOLE) if _model(r) == model]
        desk = varied(read(file))
        if found:
            lines += [
                "",
                f"## Whole runs of `recipes/desk/{file.name}`",
                "",
                "`--minutes 10` at the speed that the machine had that moment, or `--steps` of another such run, or so",
                "many that the work is the same; what differs from the recipe as it is now. Test: the whole split",
                "(`headcount evaluate RUN --split test`, by the same protocol), where measured. Of several machines:",
                "compare what was learnt by bytes read, and speeds not at all.",
                "",
                "| changed | bits per byte | test | parameters in use | steps | bytes read | seconds | date |",
                "|---|---|---|---|---|---|---|---|",
            ]
        for r in sorted(found, key=lambda r: r["bits_per_byte"]):
            had = as_now(model, r["settings"])
            changes = [f"{key} = {value}" for key, value in had.items() if desk.get(key) != value]
            changed = ", ".join([*changes, *filter(None, [r["note"]])])
            test = f"{r['test']:.4f}" if r.get("test") else ""
            lines.append(
                f"| {changed or 'nothing'} | {r['bits_per_byte']:.4f} | {test} | {r['parameters']:,} | {r['steps']:,} "
                f"| {r['bytes']:,} | {r['seconds']:.0f} | {r['date']} |"
            )
    return lines


def trial_counts(found: list[dict[str, Any]]) -> list[str]:
    """How many trials each model had, and how far it had come after the first of them, in the order they were run."""
    short, aside = {}, {}
    for model in BASES:
        own = [r for r in found if _model(r) == model and r["budget"] == SHORT_TRIAL]
        short[model] = [r["bits_per_byte"] for r in own if "n-grams" not in r["trial"]]
        aside[model] = len(own) - len(short[model])
    counts = sorted({8, *map(len, short.values())} - {0})
    best = " | ".join(f"best of {count}" for count in counts)
    lines = [
        "",
        "## How many",
        "",
        f"Short: trials of {SHORT_TRIAL:,} base steps in the order in which they were run, and the best bits per byte",
        "so far, also after as many as another model had. At length: different settings that were tried by longer",
        "trials or by whole runs, seeds and repeats aside, and how many MB these read: the median, from the least to",
        "the most. The runs of comparison.md read more than most of them, so what won here need not win there. With",
        "n-grams, which the SHA-RNN's recipe does not use: short trials and whole runs that are not among the others.",
        "Sizes and windows that trade.md and sizes.md measured of the recipe as it stands changed nothing of it, and",
        "are not counted. A trial without an architecture in its record was timed by itself, on a machine that was",
        "crowded or not: steps of one architecture then differ by up to a third.",
        "",
        f"| model | short | {best} | at length | MB read | with n-grams |",
        "|---|---|" + "---|" * (len(counts) + 3),
    ]
    for model, bits in short.items():
        cells = [f"{min(bits[:count]):.4f}" if len(bits) >= count else "" for count in counts]
        plain, ngrams = at_length(model, found)
        settings = {json.dumps([{**had, "seed": 0}, note], sort_keys=True) for had, note, _ in plain}
        read = sorted(bytes_read / 1e6 for *_, bytes_read in plain)
        cells += [f"{len(settings)}", f"{statistics.median(read):.1f} ({read[0]:.1f} – {read[-1]:.1f})" if read else ""]
        lines.append(f"| {model} | {len(bits)} | {' | '.join(cells)} | {aside[model]} + {len(ngrams)} |")
    return lines


Tried = tuple[dict[str, Any], str, int]
"""Settings, what they do not tell, bytes read."""


def at_length(model: str, found: list[dict[str, Any]]) -> tuple[list[Tried], list[Tried]]:
    """A model's longer trials and whole runs: without n-grams, and with them."""
    tried = [
        (varied(from_dict(BASES[model], tuple(r["settings"]))), "", r["bytes"])
        for r in found
        if _model(r) == model and r["budget"] > SHORT_TRIAL
    ]
    tried += [(as_now(model, r["settings"]), r["note"], r["bytes"]) for r in records(WHOLE) if _model(r) == model]
    plain = [one for one in tried if not one[0].get("model.ngrams")]
    return plain, [one for one in tried if one not in plain]


def as_now(model: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A run's settings by the keys of today: what had no key when it was made is as its default has it."""
    tables: dict[str, Any] = {"model": {"kind": model}}
    for key, value in settings.items():
        table, dot, name = key.partition(".")
        if not dot:
            tables[key] = value
        elif key not in ("model.vocabulary", "model.recompute") and value is not None:
            tables.setdefault(table, {})[name] = value
    return varied(from_dict(tables))


def _model(record: dict[str, Any]) -> str:
    """The first records had one model only."""
    return str(record.get("model", "sha-rnn"))


def _section(record: dict[str, Any]) -> tuple[str, str, int]:
    """Model, how heads begin, budget."""
    return _model(record), record["head"], record["budget"]


def write_table(found: list[dict[str, Any]]) -> None:
    """docs/results/tuning.md, from all records."""
    lines = [
        "# Trials of the desk recipes",
        "",
        "Written by `python -m benchmarks.tune enwik8.gz`; records in `tuning.jsonl`. Real enwik8, one seed, on the",
        "first 262,144 bytes of the validation split, by `carried`; the character Transformer by sliding windows, a",
        "quarter of its context apart. The budget is work: the time of so many steps of the SHA-RNN's base (one block",
        "of 320, one head, window 256, B 8, T 128, AdamW 3e-3, β 0.9/0.99, clip 0.25, 5 % warm-up, cosine to 5 %).",
        "`cost` is a step's time over that base's, timed in turn. Until trials showed better, SHA-RNN's heads began",
        "closed: gates at 1/2, small values. † was tried by code that is gone: what it showed is the default now.",
    ]
    dates = sorted({r["date"] for r in found})
    lines.append(f"Trials were run from {dates[0]} to {dates[-1]}, on several machines of two cores.")
    lines += trial_counts(found)
    known = {trial.name for trial in TRIALS}
    models = list(BASES)
    for model, head, budget in sorted({_section(r) for r in found}, key=lambda s: (models.index(s[0]), *s[1:])):
        heads = f", heads begin {head} unless said" if model == "sha-rnn" else ""
        lines += [
            "",
            f"## {model}, {budget:,} base steps{heads}",
            "",
            "| trial | bits per byte | parameters in training | cost | steps | bytes read |",
            "|---|---|---|---|---|---|",
        ]
        own = (r for r in found if _section(r) == (model, head, budget))
        for r in sorted(own, key=lambda r: r["bits_per_byte"]):
            lines.append(
                f"| {r['trial']}{'' if r['trial'] in known else ' †'} | {r['bits_per_byte']:.4f} | {r['parameters']:,} "
                f"| {r['cost_of_a_step']:.2f} | {r['steps']:,} | {r['bytes']:,} |"
            )
    (RESULTS / "tuning.md").write_text("\n".join([*lines, *whole_runs()]) + "\n")


def main() -> None:
    """Add runs, run trials that have no record yet, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", help="enwik8, as it is or compressed")
    parser.add_argument("--runs", type=Path, nargs="*", help="finished runs of the desk recipe to add")
    parser.add_argument("--note", default="", help="about these runs, where their recipes do not tell")
    parser.add_argument("--only", nargs="*", help="trials by name")
    parser.add_argument("--model", nargs="*", choices=list(BASES), help="only trials of these models")
    parser.add_argument("--budget", type=int, nargs="*", help="only trials of so many base steps")
    arguments = parser.parse_args()
    keep_freed_memory()  # as the command does: page faults cost one architecture more than another
    if arguments.runs:
        add_whole_runs(arguments.runs, arguments.note)
    if arguments.corpus:
        asked = {"name": arguments.only, "model": arguments.model, "budget": arguments.budget}
        run_trials(arguments.corpus, {key: values for key, values in asked.items() if values})
    write_table(records())


def add_whole_runs(paths: list[Path], note: str) -> None:
    """Add them, or what was measured on them since."""
    kept = {r["weights"]: r for r in records(WHOLE)}
    for path in paths:
        found = whole_run(path, note)
        kept[found["weights"]] = found
    WHOLE.write_text("".join(json.dumps(r) + "\n" for r in kept.values()))


def run_trials(corpus: str, asked: dict[str, list[Any]]) -> None:
    """Those that are asked for and have no record yet, one after the other."""
    for trial in TRIALS:
        done = {(r["trial"], r["budget"]) for r in records() if r["head"] == "open"}
        if (trial.name, trial.budget) in done or any(getattr(trial, key) not in asked[key] for key in asked):
            continue
        found = json.dumps(run(trial, corpus))
        with RECORDS.open("a") as lines:  # two processes of one thread each may run side by side
            lines.write(found + "\n")
        print(found, file=sys.stderr, flush=True)
        write_table(records())


if __name__ == "__main__":
    main()

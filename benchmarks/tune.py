"""What learns fastest in minutes: trials of the desk recipe on enwik8, every one a row of docs/results/tuning.md.

    python -m benchmarks.tune enwik8.gz [--only NAME …]

All trials have the same seed, the same training stream, the same validation bytes, and the same budget of *work*: the
time of so many steps of the base. What a step of a trial costs is timed against the base in one interleaved run just
before it, so that a busy machine slows both alike and the figure does not depend on it. Trials that have a record in
docs/results/tuning.jsonl are not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import torch
from torch import nn

from headcount.learn import device as devices
from headcount.learn.plan import Plan, settle
from headcount.learn.trainer import Learner
from headcount.measure.protocols import measure
from headcount.models.contract import count_parameters
from headcount.recipe import from_dict

RESULTS = Path(__file__).parent.parent / "docs" / "results"
RECORDS = RESULTS / "tuning.jsonl"
BASE = {
    "corpus": {"name": "enwik8"},
    "model": {"kind": "sha-rnn", "width": 320, "blocks": 1, "attention": [0], "window": 256},
    "batches": {"streams": 8, "segment": 128},
    "optimiser": {"kind": "adamw", "lr": 3e-3, "betas": [0.9, 0.99], "weight_decay": 0.01, "clip": 0.25},
    "schedule": {"kind": "cosine", "warmup": 0.05, "floor": 0.05},
    "evaluate": {"protocol": "carried", "limit": 262_144},
}
TIMED = 40
"""Steps of base and trial that are timed in turn."""


def forget_bias(value: float) -> Callable[[nn.Module], None]:
    """Both biases of every forget gate begin at half of this."""

    def change(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name.endswith(("bias_ih_l0", "bias_hh_l0")):
                width = len(parameter) // 4
                with torch.no_grad():
                    parameter[width : 2 * width] = value / 2

    return change


def timescales(longest: float) -> Callable[[nn.Module], None]:
    """Forget gates begin so that units remember for 1 … `longest` steps, and input gates the other way round."""

    def change(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name.endswith("bias_ih_l0"):
                width = len(parameter) // 4
                spread = torch.empty(width).uniform_(1.0, longest - 1.0).log()
                with torch.no_grad():
                    parameter[:width] = -spread
                    parameter[width : 2 * width] = spread

    return change


def orthogonal(model: nn.Module) -> None:
    """Recurrent matrices begin orthogonal, gate by gate."""
    for name, parameter in model.named_parameters():
        if name.endswith("weight_hh_l0"):
            for gate in parameter.chunk(4):
                nn.init.orthogonal_(gate)


@dataclass(frozen=True)
class Trial:
    """A change of the base, by settings or by hand, and the budget in base steps."""

    name: str
    settings: tuple[str, ...] = ()
    change: Callable[[nn.Module], None] | None = None
    budget: int = 2_000


SHORT = ("model.boom=2", "model.window=128", "batches.streams=16", "batches.segment=64")
TWO_BLOCKS = ("model.boom=2", "model.width=256", "model.blocks=2")
TRIALS = (
    Trial("base"),
    Trial("base, another seed", ("seed=2",)),
    Trial("forget bias 1", change=forget_bias(1.0)),
    Trial("clip 1", ("optimiser.clip=1.0",)),
    Trial("lr 4.5e-3", ("optimiser.lr=0.0045",)),
    Trial("segment 64", ("batches.segment=64",)),
    Trial("streams 4", ("batches.streams=4",)),
    Trial("streams 16, lr 4e-3", ("batches.streams=16", "optimiser.lr=0.004")),
    Trial("window 128", ("model.window=128",)),
    Trial("window 512", ("model.window=512",)),
    Trial("no head", ("model.attention=[]",)),
    Trial("width 256", ("model.width=256",)),
    Trial("width 384", ("model.width=384",)),
    Trial("boom 2", ("model.boom=2",)),
    Trial("boom 8", ("model.boom=8",)),
    Trial("lr 2e-3", ("optimiser.lr=0.002",)),
    Trial("linear to 0", ("schedule.kind=linear", "schedule.floor=0.0")),
    Trial("cosine to 0", ("schedule.floor=0.0",)),
    Trial("beta2 0.999", ("optimiser.betas=[0.9, 0.999]",)),
    Trial("beta2 0.95", ("optimiser.betas=[0.9, 0.95]",)),
    Trial("beta1 0.8", ("optimiser.betas=[0.8, 0.99]",)),
    Trial("weight decay 0.1", ("optimiser.weight_decay=0.1",)),
    Trial("orthogonal recurrent matrices", change=orthogonal),
    Trial("timescales to 30", change=timescales(30.0)),
    Trial("two blocks of 256, head in the first", ("model.width=256", "model.blocks=2")),
    Trial("boom 1", ("model.boom=1",)),
    Trial("width 256, lr 4e-3", ("model.width=256", "optimiser.lr=0.004")),
    Trial("width 256, boom 2, lr 4e-3", ("model.width=256", "model.boom=2", "optimiser.lr=0.004")),
    Trial("boom 2, window 128", ("model.boom=2", "model.window=128")),
    Trial("short: boom 2, streams 16, segment 64, window 128", SHORT),
    Trial("short: lr 4e-3", (*SHORT, "optimiser.lr=0.004")),
    Trial("short: width 256, lr 4e-3", (*SHORT, "model.width=256", "optimiser.lr=0.004")),
    Trial("short: boom 1", (*SHORT, "model.boom=1")),
    Trial(
        "short: forget bias 1, linear to 0", (*SHORT, "schedule.kind=linear", "schedule.floor=0.0"), forget_bias(1.0)
    ),
    Trial("short: streams 32, segment 32", (*SHORT, "batches.streams=32", "batches.segment=32")),
    Trial("short: window 64", (*SHORT, "model.window=64")),
    Trial("boom 2, another seed", ("model.boom=2", "seed=2")),
    Trial("boom 2, head in the second of two blocks of 256", (*TWO_BLOCKS, "model.attention=[1]")),
    Trial("boom 2, two blocks of 256, head in the first", TWO_BLOCKS),
    Trial("segment 192", ("batches.segment=192",)),
    Trial("streams 6", ("batches.streams=6",)),
)


def plan_of(trial: Trial, corpus: str) -> Plan:
    """The settled plan of a trial; the number of steps comes later."""
    return settle(from_dict(BASE, (f"corpus.path={corpus}", *trial.settings)), print, minutes=True)


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


def run(trial: Trial, corpus: str) -> dict[str, object]:
    """Train a trial for its budget and measure it."""
    device = devices.choose("cpu")
    plan = plan_of(trial, corpus)
    with device.own_generators():
        cost = relative_cost(Learner(plan_of(TRIALS[0], corpus), device), Learner(plan, device))
        learner = Learner(plan, device)
        if trial.change is not None:
            trial.change(learner.model)
        steps = round(trial.budget / cost)
        began = time.perf_counter()
        read = sum(learner.learn(step, steps)["predictions"] for step in range(steps))
        seconds = time.perf_counter() - began
        measured = measure(
            learner.model, plan.held_out(), name=plan.recipe.evaluate.protocol, start=plan.tokens.start, split="valid"
        )
    return {
        "trial": trial.name,
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


def records() -> list[dict[str, object]]:
    """What was found so far."""
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def write_table(found: list[dict[str, object]]) -> None:
    """docs/results/tuning.md, from all records."""
    lines = [
        "# Trials of the desk recipe",
        "",
        "Written by `python -m benchmarks.tune enwik8.gz`; records in `tuning.jsonl`. Real enwik8, one seed, `carried`",
        "on the first 262,144 bytes of the validation split. The budget is work: the time of so many steps of the base",
        "(one block of 320, one head, window 256, B 8, T 128, AdamW 3e-3, β 0.9/0.99, clip 0.25, 5 % warm-up, cosine",
        "to 5 %).",
        "`cost` is a step's time over the base's, timed in turn.",
    ]
    for budget in sorted({int(str(r["budget"])) for r in found}):
        base = next((r for r in found if r["budget"] == budget and str(r["trial"]).startswith("base")), None)
        lines += ["", f"## A budget of {budget:,} base steps", ""]
        lines += [
            "| trial | bits per byte | against base | parameters | cost | steps | bytes read |",
            "|---|---|---|---|---|---|---|",
        ]
        for r in sorted((r for r in found if r["budget"] == budget), key=lambda r: float(str(r["bits_per_byte"]))):
            bits = float(str(r["bits_per_byte"]))
            against = f"{bits - float(str(base['bits_per_byte'])):+.4f}" if base else ""
            lines.append(
                f"| {r['trial']} | {bits:.4f} | {against} | {r['parameters']:,} | {r['cost_of_a_step']:.2f} "
                f"| {r['steps']:,} | {r['bytes']:,} |"
            )
    (RESULTS / "tuning.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Run what has no record yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="enwik8, as it is or compressed")
    parser.add_argument("--only", nargs="*", help="trials by name")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for trial in TRIALS:
        done = {(r["trial"], r["budget"]) for r in records()}
        if (trial.name, trial.budget) in done or (arguments.only and trial.name not in arguments.only):
            continue
        found = json.dumps(run(trial, arguments.corpus))
        with RECORDS.open("a") as lines:  # two processes of one thread each may run side by side
            lines.write(found + "\n")
        print(found, file=sys.stderr, flush=True)
        write_table(records())


if __name__ == "__main__":
    main()

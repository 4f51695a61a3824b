"""How `make bench` measures: steps in turn, the machine's limit, memory in a process of its own, and the page's head.

Everything is timed in one process, in turn, and medians are compared; what else ran on the machine and the machine's
own limit for matrix products stand beside the figures.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import torch

from headcount.layers.products import fast_products
from headcount.learn.device import machine
from headcount.learn.device import peak_memory as resident_peak
from headcount.learn.malloc import keep_freed_memory
from headcount.learn.optimisers import build
from headcount.models.contract import Model
from headcount.tables import AdamWTable

RESULTS = Path(__file__).parent.parent / "docs" / "results"
WARM, REPEATS = 6, 12
PAUSE = 0.2
"""Seconds before a step: NumPy's library lets its threads wait for work for a tenth of one, and they take a core."""

Step = Callable[[], None]
Row = tuple[str, str, str, str]
"""What, the figure, the figure that is wanted, and what it rests on."""


def training(model: Model, streams: int, segment: int) -> Step:
    """One training step of a model of ours, with carried state."""
    optimiser = build(AdamWTable(), model.train())
    tokens = torch.randint(0, 256, (streams, segment + model.lookahead))
    carried = {"state": model.start(streams)}

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with fast_products():
            loss, state = model.objective(tokens, carried["state"], 0.0)
            loss.total.backward()
        carried["state"] = state.detach()
        optimiser.step()

    return step


def in_turn(*steps: Step, repeats: int = REPEATS, pause: float = PAUSE) -> list[list[float]]:
    """Seconds of each step, timed one after the other so that a disturbance meets all."""
    for _ in range(WARM):
        for step in steps:
            step()
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(repeats):
        for own, step in zip(times, steps, strict=True):
            time.sleep(pause)
            began = time.perf_counter()
            step()
            own.append(time.perf_counter() - began)
    return times


PRODUCT = 2048
"""Matrices of this size, in float32, set the limit."""
PRODUCT_FLOPS = 2 * PRODUCT**3


def product() -> Step:
    """A large product of matrices: timed in turn with what is held against it."""
    a, b, out = (torch.randn(PRODUCT, PRODUCT) for _ in range(3))

    def multiply() -> None:
        with fast_products():
            torch.mm(a, b, out=out)

    return multiply


def against_twin(name: str, wanted: str, ours: Step, twin: Step, flops: int, repeats: int = REPEATS) -> list[Row]:
    """How much faster a step of ours is than the twin's: as torch computes the twin, and by the library we choose.

    Which library multiplies is part of how ours is computed, so both are told. `flops` are those of a step.
    """

    def twin_by_our_library() -> None:
        with fast_products():
            twin()

    times = in_turn(ours, twin, twin_by_our_library, product(), repeats=repeats)
    mine, theirs, by_ours, limit = (statistics.median(own) for own in times)
    told = f"{1e3 * mine:,.0f} against {1e3 * theirs:,.0f} ms; {(flops / mine) / (PRODUCT_FLOPS / limit):.0%}"
    return [
        (name, f"{theirs / mine:.2f} ×", wanted, f"{told} of a limit of {PRODUCT_FLOPS / limit / 1e9:.0f} GFLOP/s"),
        (f"{name}; twin by our library", f"{by_ours / mine:.2f} ×", "", f"against {1e3 * by_ours:,.0f} ms"),
    ]


def neighbours() -> str:
    """What else runs here, as far as the system tells: the busiest processes that are not ours."""
    try:
        told = subprocess.run(
            ["ps", "-eo", "pid,pcpu,comm", "--sort=-pcpu"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    rows = [line.split(None, 2) for line in told.stdout.splitlines()[1:]]
    busy = [f"{name} {share} %" for pid, share, name in rows if float(share) >= 2 and int(pid) != os.getpid()]
    return ", ".join(name for name in busy[:5] if not name.startswith("ps ")) or "nothing that takes 2 % of a core"


def peak_memory(module: str, making: str) -> int:
    """Peak resident bytes of a process that does nothing but the steps that an expression in a module makes."""
    code = f"import {module} as there; from {__name__} import train_alone; train_alone(lambda: there.{making})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def train_alone(making: Callable[[], Step]) -> None:
    """Ten steps, and the peak of this process."""
    keep_freed_memory()
    step = making()
    for _ in range(10):
        step()
    print(resident_peak())


def surroundings() -> tuple[float, str]:
    """The load of the machine and what makes it: to be asked before anything is measured."""
    return os.getloadavg()[0], neighbours()


def write(file: str, title: str, before: tuple[float, str], about: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a page and keep it: where and beside what it was measured, what was, and the figures."""
    (load, others), here = before, machine()
    lines = [
        f"# {title}",
        "",
        f"Written by `make bench` on {date.today().isoformat()}: torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()};",
        f"{here['processor']}, {here['cores']} cores, {here['system']};",
        f"load average {load:.2f} before and {os.getloadavg()[0]:.2f} after; beside it ran {others}.",
        "",
        *about,
        "",
        "| what | figure | wanted | |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    print("\n".join(lines))
    (RESULTS / file).write_text("\n".join(lines) + "\n")

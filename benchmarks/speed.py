"""`make bench`: how fast the SHA-RNN is here, as ratios against the published way of computing the same function.

Everything is timed in one process, in turn, and medians are compared; what else ran on the machine and the machine's
own limit for matrix products stand beside the figures. Writes docs/results/speed.md.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch

from benchmarks.published import PublishedShaRnn, detach
from headcount.exchange.legacy import load_sha_rnn
from headcount.layers.products import fast_products
from headcount.learn.device import peak_memory as resident_peak
from headcount.learn.malloc import keep_freed_memory
from headcount.models.contract import Model
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "speed.md"
SMALL = {"width": 256, "blocks": 4, "attention": (2,), "window": 1024, "window_rule": "segment"}
STREAMS, SEGMENT = 16, 256
WARM, REPEATS = 6, 12


Step = Callable[[], None]


def our_training(dropout: float, recompute: str = "nothing") -> Step:
    """One training step of ours; the memory is full after a few."""
    model = ShaRnn(ShaRnnConfig(**SMALL, dropout=dropout, recompute=recompute)).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens, carried = torch.randint(0, 256, (STREAMS, SEGMENT + 1)), {"state": model.start(STREAMS)}

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with fast_products():
            loss, state = model.objective(tokens, carried["state"], 0.0)
            loss.total.backward()
        carried["state"] = state.detach()
        optimiser.step()

    return step


def twin_training(dropout: float) -> Step:
    """One training step of the twin."""
    model = PublishedShaRnn(ShaRnnConfig(**SMALL, dropout=dropout)).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens, carried = torch.randint(0, 256, (SEGMENT + 1, STREAMS)), {"state": None}

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        hidden, state = model(tokens[:-1], carried["state"])
        model.loss(hidden, tokens[1:]).backward()
        carried["state"] = detach(state)
        optimiser.step()

    return step


def training_flops() -> int:
    """Floating-point operations of one such step."""
    with torch.device("meta"):
        return 3 * ShaRnn(ShaRnnConfig(**SMALL)).spec(SEGMENT).flops * STREAMS * SEGMENT


def in_turn(*steps: Step, repeats: int = REPEATS) -> list[list[float]]:
    """Seconds of each step, timed one after the other so that a disturbance meets all."""
    for _ in range(WARM):
        for step in steps:
            step()
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(repeats):
        for own, step in zip(times, steps, strict=True):
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


def pair(window: int) -> tuple[Model, PublishedShaRnn]:
    """The same weights under both."""
    torch.manual_seed(0)
    twin = PublishedShaRnn(ShaRnnConfig(**{**SMALL, "window": window})).eval()
    return load_sha_rnn(twin.state_dict(), window).finished().eval(), twin


@torch.inference_mode()
def agreement() -> float:
    """The largest difference of the two models' outputs over several segments."""
    ours, twin = pair(1024)
    state, carried, worst = ours.start(2), None, 0.0
    for tokens in torch.randint(0, 256, (2, 1536)).split(256, dim=1):
        mine, state = ours(tokens, state)
        theirs, carried = twin(tokens.t(), carried)
        worst = max(worst, (mine - theirs.transpose(0, 1)).abs().max().item())
    return worst


@torch.inference_mode()
def generation(window: int) -> tuple[float, float]:
    """Seconds a byte at batch 1 with a full window: ours and the twin's."""
    ours, twin = pair(window)
    text = torch.randint(0, 256, (1, window))
    carried: dict[str, object] = {"ours": ours.start(1), "twin": None}
    for piece in text.split(128, dim=1):
        _, carried["ours"] = ours(piece, carried["ours"])
        _, carried["twin"] = twin(piece.t(), carried["twin"])
    one = text[:, :1]

    def our_bytes() -> None:
        for _ in range(20):
            hidden, carried["ours"] = ours(one, carried["ours"])
            ours.head.log_probs(hidden)

    def twin_bytes() -> None:
        for _ in range(20):
            hidden, carried["twin"] = twin(one.t(), carried["twin"])
            torch.log_softmax(twin.decoder(hidden), dim=-1)

    mine, theirs = in_turn(our_bytes, twin_bytes)
    return statistics.median(mine) / 20, statistics.median(theirs) / 20


@torch.inference_mode()
def flatness() -> float:
    """Seconds a byte after 100,000 bytes over seconds a byte after 1,024: two texts, a byte of each in turn."""
    ours, _ = pair(1024)
    one, states = torch.zeros(1, 1, dtype=torch.long), []
    for length in (1_024, 100_000):
        states.append(ours.start(1))
        for piece in torch.randint(0, 256, (1, length)).split(512, dim=1):
            _, states[-1] = ours(piece, states[-1])

    def one_byte(which: int) -> Step:
        def step() -> None:
            _, states[which] = ours(one, states[which])

        return step

    early, late = in_turn(one_byte(0), one_byte(1), repeats=2_500)
    return statistics.median(late) / statistics.median(early)


@torch.inference_mode()
def scoring() -> float:
    """Share of the limit that scoring reaches at 16 streams."""
    ours, _ = pair(1024)
    carried: dict[str, object] = {"state": ours.start(16)}
    tokens = torch.randint(0, 256, (16, 512))

    def step() -> None:
        with fast_products():
            hidden, carried["state"] = ours(tokens, carried["state"])
            ours.head.nll(hidden, tokens)

    own, limit = (statistics.median(times) for times in in_turn(step, product()))
    return (ours.spec(512).flops * tokens.numel() / own) / (PRODUCT_FLOPS / limit)


def peak_memory(which: str, dropout: float, recompute: str) -> int:
    """Peak resident bytes of a process that trains only one of the two."""
    code = f"from benchmarks.speed import train_alone; train_alone({which!r}, {dropout}, {recompute!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def train_alone(which: str, dropout: float, recompute: str) -> None:
    """Ten steps, and the peak of this process."""
    keep_freed_memory()
    step = our_training(dropout, recompute) if which == "ours" else twin_training(dropout)
    for _ in range(10):
        step()
    print(resident_peak())


Row = tuple[str, str, str, str]


WANTED_OF_TRAINING = tuple(
    (dropout, recompute, wanted)
    for dropout, wanted in ((0.1, "≥ 1.25 ×"), (0.0, "≥ 1.05 ×"))
    for recompute in ("layers", "nothing")
)
"""Dropout, what is recomputed, and how much faster than the twin that should be."""


def _recomputing(what: str) -> str:
    return "" if what == "nothing" else f", recompute = {what}"


def _training_rows() -> list[Row]:
    rows = []
    for dropout, recompute, wanted in WANTED_OF_TRAINING:
        ours, twin, flops = our_training(dropout, recompute), twin_training(dropout), training_flops()
        mine, theirs, limit = (statistics.median(times) for times in in_turn(ours, twin, product()))
        speeds = f"{STREAMS * SEGMENT / mine:,.0f} against {STREAMS * SEGMENT / theirs:,.0f} bytes/s"
        share = (
            f"{(flops / mine) / (PRODUCT_FLOPS / limit):.0%} of a limit of {PRODUCT_FLOPS / limit / 1e9:.0f} GFLOP/s"
        )
        name = f"training, dropout {dropout:g}{_recomputing(recompute)}"
        rows.append((name, f"{theirs / mine:.2f} ×", wanted, f"{speeds}, {share}"))
    for dropout, recompute, _ in WANTED_OF_TRAINING:
        mine, theirs = (peak_memory(which, dropout, recompute) / 2**20 for which in ("ours", "twin"))
        name = f"peak memory of training, dropout {dropout:g}{_recomputing(recompute)}"
        rows.append((name, f"{mine / theirs:.2f} ×", "≤ 0.6 ×", f"{mine:,.0f} against {theirs:,.0f} MiB"))
    return rows


def _use_rows() -> list[Row]:
    rows = []
    for window, wanted in ((1024, 2.5), (5000, 5.0)):
        mine, theirs = generation(window)
        times = f"{1e3 * mine:.2f} against {1e3 * theirs:.2f} ms a byte"
        rows.append((f"generation, window {window:,}", f"{theirs / mine:.2f} ×", f"≥ {wanted:g} ×", times))
    name = "generation, a byte after 100,000 against one after 1,024"
    rows.append((name, f"{flatness():.2f} ×", "flat", "window 1,024"))
    share = scoring()
    rows.append(("scoring, 16 streams, segments of 512", f"{share:.0%}", "≥ 50 %", "of the limit"))
    return rows


def main() -> None:
    """Measure, print, write."""
    keep_freed_memory()
    load_before, others = os.getloadavg()[0], neighbours()
    difference = agreement()
    assert difference < 1e-4, f"the two do not compute the same: {difference}"
    rows = [*_training_rows(), *_use_rows()]
    lines = [
        "# Speed",
        "",
        f"Written by `make bench` on {date.today().isoformat()}: torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}, {platform.system()};",
        f"load average {load_before:.2f} before and {os.getloadavg()[0]:.2f} after; beside it ran {others}.",
        "",
        "Small: width 256, 4 blocks, 1 head, window 1,024, T 256, B 16. The limit is a product of 2048 × 2048 float32",
        "matrices by the faster of torch's two libraries, timed in turn with what is held against it. The twin",
        "(`benchmarks/published.py`) computes the same function the published way (largest difference of outputs",
        f"{difference:.0e}), with the same optimiser,",
        "threads and malloc. Medians, in turn.",
        "",
        "| what | figure | wanted | |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    print("\n".join(lines))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

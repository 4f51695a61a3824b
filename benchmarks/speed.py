"""`make bench`: how fast the SHA-RNN is here, as ratios against the published way of computing the same function.

Measured as `benchmarks.measured` says. Writes docs/results/speed.md.
"""

from __future__ import annotations

import statistics

import torch

from benchmarks.measured import (
    PRODUCT_FLOPS,
    Row,
    Step,
    against_twin,
    in_turn,
    peak_memory,
    product,
    surroundings,
    training,
    write,
)
from benchmarks.published import PublishedShaRnn, detach
from headcount.exchange.legacy import load_sha_rnn
from headcount.layers.products import fast_products
from headcount.learn.malloc import keep_freed_memory
from headcount.learn.optimisers import build
from headcount.models.contract import Model
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.tables import AdamWTable

SMALL = {"width": 256, "blocks": 4, "attention": (2,), "window": 1024, "window_rule": "segment"}
STREAMS, SEGMENT = 16, 256


def our_training(dropout: float, recompute: str = "nothing") -> Step:
    """One training step of ours; the memory is full after a few."""
    return training(ShaRnn(ShaRnnConfig(**SMALL, dropout=dropout, recompute=recompute)), STREAMS, SEGMENT)


def twin_training(dropout: float) -> Step:
    """One training step of the twin."""
    model = PublishedShaRnn(ShaRnnConfig(**SMALL, dropout=dropout)).train()
    optimiser = build(AdamWTable(), model)
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

    early, late = in_turn(one_byte(0), one_byte(1), repeats=2_500, pause=0.0)
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


WANTED_OF_TRAINING = tuple(
    (dropout, recompute, wanted)
    for dropout, wanted in ((0.1, "≥ 1.25 ×"), (0.0, "≥ 1.05 ×"))
    for recompute in ("layers", "nothing")
)
"""Dropout, what is recomputed, and how much faster than the twin that should be."""


def _recomputing(what: str) -> str:
    return "" if what == "nothing" else f", recompute = {what}"


def _training_rows() -> list[Row]:
    rows: list[Row] = []
    for dropout, recompute, wanted in WANTED_OF_TRAINING:
        name = f"training, dropout {dropout:g}{_recomputing(recompute)}"
        rows += against_twin(name, wanted, our_training(dropout, recompute), twin_training(dropout), training_flops())
    for dropout, recompute, _ in WANTED_OF_TRAINING:
        steps = f"our_training({dropout}, {recompute!r})", f"twin_training({dropout})"
        mine, theirs = (peak_memory("benchmarks.speed", step) / 2**20 for step in steps)
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
    before, difference = surroundings(), agreement()
    assert difference < 1e-4, f"the two do not compute the same: {difference}"
    about = [
        "Small: width 256, 4 blocks, 1 head, window 1,024, T 256, B 16. The limit is a product of 2048 × 2048 float32",
        "matrices by the faster of torch's two libraries, timed in turn with what is held against it. The twin",
        "(`benchmarks/published.py`) computes the same function the published way (largest difference of outputs",
        f"{difference:.0e}), with the same optimiser, threads and malloc. Its products come from the library that",
        "torch takes by itself, and once more from the one that ours chooses (`layers/products.py`). Medians, in turn.",
    ]
    write("speed.md", "Speed", before, about, [*_training_rows(), *_use_rows()])


if __name__ == "__main__":
    main()

"""What a carried state saves: the "1,800 times" of Transformer-XL (Dai et al. 2019, table 9), measured here.

    python -m benchmarks.carried

Scoring a byte with an attention length of N, two ways, both at their best on this machine:

- sliding: a model with absolute positions reads a window of N anew for every byte (the character Transformer, fused
  attention, of the last layer only the last row; as many windows side by side as 8,192 symbols hold);
- carried: Transformer-XL with a window of N and its keys, values and projected positions in the state, fed in segments.

Both have 12 layers of 512, 8 heads, feed-forward 2,048. Ratios, medians, in turn; writes docs/results/carried.md and a
page with the plot, docs/results/carried.html.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from datetime import date

import torch

from benchmarks.measured import RESULTS, in_turn, surroundings
from headcount.layers.products import fast_products
from headcount.learn.malloc import keep_freed_memory, use_large_pages
from headcount.measure.sliding import FED_AT_ONCE
from headcount.models.char_transformer import CharTransformer, CharTransformerConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.show.page import Section, page
from headcount.show.plots import Line, line_chart

SIZES = {"width": 512, "layers": 12, "heads": 8, "inner": 2048}
LENGTHS = (400, 800, 1_800, 3_800)
SEGMENTS = (1, 128, 512)
REPEATS = 7
BYTES_IN_TURN = 32
"""Single bytes that are timed together."""


def sliding(length: int) -> tuple[Callable[[], None], int]:
    """Windows side by side, from an empty state, and how many bytes that scores."""
    model = CharTransformer(CharTransformerConfig(**SIZES, context=length)).finished().eval()
    windows = max(1, FED_AT_ONCE // length)
    tokens = torch.randint(0, 256, (windows, length))

    def step() -> None:
        with fast_products():
            model.head.nll(model.tail(tokens, model.start(windows), 1), tokens[:, -1:])

    return step, windows


def carried(length: int, segment: int) -> tuple[Callable[[], None], int]:
    """Segments after a full memory, and how many bytes that scores."""
    model = TransformerXL(TransformerXLConfig(**SIZES, window=length)).eval()
    state = {"now": model.start(1)}
    for piece in torch.randint(0, 256, (1, length + 512)).split(512, dim=1):
        _, state["now"] = model(piece, state["now"])
    tokens, times = torch.randint(0, 256, (1, segment)), BYTES_IN_TURN if segment == 1 else 1

    def step() -> None:
        with fast_products(segment):
            for _ in range(times):
                hidden, state["now"] = model(tokens, state["now"])
                model.head.nll(hidden, tokens)

    return step, segment * times


@torch.inference_mode()
def measure() -> dict[int, list[list[float]]]:
    """Seconds a byte by attention length, of every repeat, shortest first: sliding, then carried for every segment."""
    found = {}
    for length in LENGTHS:
        steps = [sliding(length), *(carried(length, segment) for segment in SEGMENTS)]
        times = in_turn(*(step for step, _ in steps), repeats=REPEATS)
        found[length] = [sorted(t / count for t in own) for own, (_, count) in zip(times, steps, strict=True)]
        print(length, [f"{1e3 * statistics.median(own):.3f} ms" for own in found[length]], flush=True)
    return found


def main() -> None:
    """Measure, print, write."""
    keep_freed_memory()
    use_large_pages()
    load, others = surroundings()
    timed = measure()
    found = {length: [statistics.median(own) for own in ways] for length, ways in timed.items()}
    apart = max((own[-1] - own[0]) / statistics.median(own) for ways in timed.values() for own in ways)
    head = "".join(f" carried, segments of {segment} |" for segment in SEGMENTS)
    lines = [
        "# What a carried state saves",
        "",
        f"Written by `python -m benchmarks.carried` on {date.today().isoformat()}: torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()};",
        f"load average {load:.2f} before; beside it ran {others}. 12 layers of 512, 8 heads, feed-forward 2,048.",
        "Cost of scoring a byte, both ways at their best: a window recomputed for every byte (fused attention, of the",
        "last layer only the last row), against Transformer-XL with carried state. Wanted at 3,800: 1,000 × with",
        "segments of 128 or more, 80 × byte by byte. Medians of 7 repeats in turn, which are apart by up to "
        f"{apart:.0%} of them. Plot: carried.html.",
        "",
        f"| attention length | sliding, ms a byte |{head}",
        "|---|---|" + "---|" * len(SEGMENTS),
    ]
    for length, (slid, *rest) in found.items():
        cells = " | ".join(f"{1e3 * t:.3f} ms, {slid / t:,.0f} ×" for t in rest)
        lines.append(f"| {length:,} | {1e3 * slid:,.1f} | {cells} |")
    print("\n".join(lines))
    (RESULTS / "carried.md").write_text("\n".join(lines) + "\n")
    curves = [
        Line(f"segments of {segment}", [(n, t[0] / t[i + 1]) for n, t in found.items()], i, marked=True)
        for i, segment in enumerate(SEGMENTS)
    ]
    about = "How many times as much a window costs that is recomputed for every byte."
    charts = [line_chart(own, "attention length", "times the cost", doubling=True) for own in (curves[1:], curves[:1])]
    sections = [Section("In segments", about, charts[0]), Section("Byte by byte", "As when a model writes.", charts[1])]
    (RESULTS / "carried.html").write_text(page("What a carried state saves", sections))


if __name__ == "__main__":
    main()

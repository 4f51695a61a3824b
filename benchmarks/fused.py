"""`make bench`: attention by distance as it is computed here, against torch's own with distances as its bias.

Measured as `benchmarks.measured` says. Writes docs/results/fused.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.measured import Row, Step, in_turn, surroundings, write
from headcount.layers.memory import seen
from headcount.layers.products import fast_products
from headcount.layers.relative import attend_by_distance, fused
from headcount.layers.relative_heads import as_bias
from headcount.learn.malloc import keep_freed_memory

HEADS, D = 4, 64
SHAPES = {"training": (16, 256, 1280), "scoring": (1, 128, 3928)}
"""Streams, queries and keys: of `benchmarks.rivals`, and of a long memory read in segments."""
CALLS = 12
"""One after the other, as a model's layers make them: the first after a pause is slower."""


def given(shape: tuple[int, int, int]) -> list[Tensor]:
    """Both queries, keys and values, and the rows of the distances."""
    streams, queries, keys = shape
    sizes = [(streams, HEADS, queries, D)] * 2 + [(streams, 2 * HEADS, keys, D), (HEADS, keys, D)]
    return [torch.randn(size) / math.sqrt(D) for size in sizes]


def hidden(shape: tuple[int, int, int]) -> Tensor | None:
    """What lies ahead of a query."""
    cpu = torch.device("cpu")
    return as_bias(seen(shape[1], shape[2], None, cpu), torch.empty((), device=cpu))


def ways(shape: tuple[int, int, int], backward: bool) -> list[Step]:
    """Ours and torch's on the same numbers, with gradients of all of them or with none."""
    tensors, hide = [tensor.requires_grad_(backward) for tensor in given(shape)], hidden(shape)

    def step_of(way: Callable[..., Tensor]) -> Step:
        def step() -> None:
            with torch.set_grad_enabled(backward), fast_products():
                for _ in range(CALLS):
                    out = way(*tensors, hide)
                    if backward:
                        torch.autograd.grad(out.sum(), tensors)

        return step

    return [step_of(attend_by_distance), step_of(fused)]


@torch.no_grad()
def difference() -> float:
    """The largest difference of the two ways' outputs."""
    shape = (2, 40, 100)
    tensors, hide = given(shape), hidden(shape)
    return (attend_by_distance(*tensors, hide) - fused(*tensors, hide)).abs().max().item()


def rows() -> list[Row]:
    """How much longer torch takes."""
    found: list[Row] = []
    for name, backward in (("training", True), ("scoring", False)):
        ours, theirs = (
            1e3 * statistics.median(own) / CALLS for own in in_turn(*ways(SHAPES[name], backward), repeats=5)
        )
        what = "{} × {} queries over {:,} keys".format(*SHAPES[name])
        mode = "forward and backward" if backward else "without gradients"
        found.append((f"{name}, {mode}: {what}", f"{theirs / ours:.2f} ×", "", f"{ours:.1f} against {theirs:.1f} ms"))
    return found


def main() -> None:
    """Measure, print, write."""
    keep_freed_memory()
    before, apart = surroundings(), difference()
    assert apart < 1e-4, f"the two do not compute the same: {apart}"
    about = [
        f"{HEADS} heads of {D}: `layers/relative.py` against torch's `scaled_dot_product_attention` with the shifted",
        f"term of the distances as its bias (largest difference of outputs {apart:.0e}), products by the same library.",
        "Without gradients that is its fused kernel; a bias that needs a gradient makes it take its plain form.",
        f"Medians, in turn, of {CALLS} calls in a row, as of as many layers: above 1 torch's is slower.",
    ]
    write("fused.md", "Attention by distance, and torch's own", before, about, rows())


if __name__ == "__main__":
    main()

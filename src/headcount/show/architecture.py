"""A model drawn from its outline, input at the bottom: width shows width, colour shows what a layer does."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.counted import counted
from headcount.models.contract import Part
from headcount.show.page import escape

WIDTH, ROW, GAP = 720, 46, 10
CENTRE, WIDEST, NARROWEST = 190, 330, 70
COLOURS = {"LSTM": 0, "attention": 1, "Boom": 2, "feed-forward": 2, "positions": 3}
"""By a part's name up to its first comma."""


def drawing(parts: Sequence[Part], unit: str = "byte") -> str:
    """Inline SVG; blocks that repeat are drawn once, with how often they stand there. `unit`: what a step reads."""
    layers = _folded(parts)
    widest = max(max(part.sizes) for part, _ in layers)
    height = len(layers) * (ROW + GAP) + 30
    drawn = []
    for row, (part, times) in enumerate(layers):
        bottom = height - 20 - row * (ROW + GAP)
        drawn.append(_layer(part, times, bottom, widest, unit))
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="group" aria-label="the layers of the model">'
        f"{''.join(drawn)}</svg>"
    )


def _folded(parts: Sequence[Part]) -> list[tuple[Part, int]]:
    """Parts in order; of equal blocks in a row only the first, with their number."""
    blocks: list[list[Part]] = []
    for part in parts:
        if part.block is not None and blocks and blocks[-1][0].block == part.block:
            blocks[-1].append(part)
        else:
            blocks.append([part])
    folded: list[tuple[list[Part], int]] = []
    for block in blocks:
        looks = [(p.name, p.sizes, p.looks_back) for p in block]
        if folded and block[0].block is not None and looks == [(p.name, p.sizes, p.looks_back) for p in folded[-1][0]]:
            folded[-1] = (folded[-1][0], folded[-1][1] + 1)
        else:
            folded.append((block, 1))
    return [(part, times) for block, times in folded for part in block]


def _layer(part: Part, times: int, bottom: float, widest: int, unit: str) -> str:
    """A box whose outline follows the widths from input to output, and what is to be said beside it."""
    half = [max(NARROWEST, WIDEST * size / widest) / 2 for size in part.sizes]
    heights = [bottom - ROW * i / (len(half) - 1) for i in range(len(half))]
    right = [f"{CENTRE + h:.0f},{y:.0f}" for h, y in zip(half, heights, strict=True)]
    left = [f"{CENTRE - h:.0f},{y:.0f}" for h, y in zip(half, heights, strict=True)]
    colour = COLOURS.get(part.name.partition(",")[0], 4)
    middle = bottom - ROW / 2
    notes = " → ".join(f"{size:,}" for size in part.sizes) + (f" · {times} times" if times > 1 else "")
    carried = f"carries {part.state:,} numbers" if part.state else ""
    looks = f"looks back over {counted(part.looks_back, unit)}" if part.looks_back else ""
    beside = [line for line in (looks, carried) if line]
    top = middle + 5 - 8.5 * len(beside)
    lines = "".join(
        f'<text class="tick" x="380" y="{top + 17 * (i + 1):g}">{escape(line)}</text>' for i, line in enumerate(beside)
    )
    return (
        f'<polygon class="layer c{colour}" points="{" ".join(right + left[::-1])}"/>'
        f'<text class="inside" x="{CENTRE}" y="{middle + 5}" text-anchor="middle">{escape(part.name)}</text>'
        f'<text class="beside-layer" x="380" y="{top:g}">{escape(notes)}</text>{lines}'
    )

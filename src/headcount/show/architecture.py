"""A model drawn from its outline, input at the bottom: width shows width, colour shows what a layer does."""

from __future__ import annotations

from collections.abc import Sequence

from headcount.counted import counted
from headcount.models.contract import Part
from headcount.show.page import escape

WIDTH, ROW, GAP, LINE = 720, 46, 10, 30
"""Of a box and between two; a line of what stands beside it has room also in the large letters of a phone."""
CENTRE, WIDEST, MARGIN = 190, 330, 14
LETTER = 24
"""Of a phone; the style sheet has it too. What fits at this size fits at any."""
LABEL = 6.4
"""Of LETTER, the width at which a label goes on in a new line, if it has several words."""
LETTERS = {**dict.fromkeys("fijlrt,.()- ", 0.42), **dict.fromkeys("mwMW", 1.0)}
"""How wide they are where they are wide (DejaVu, Verdana), in parts of their size; others 0.66."""
COLOURS = {"LSTM": 0, "attention": 1, "Boom": 2, "feed-forward": 2, "positions": 3}
"""By a part's name up to its first comma."""


def drawing(parts: Sequence[Part], unit: str = "byte") -> str:
    """Inline SVG; blocks that repeat are drawn once, with how often they stand there. `unit`: what a step reads."""
    layers = _folded(parts)
    widest = max(max(part.sizes) for part, _ in layers)
    rows = [max(ROW, LINE * max(len(_label(part)), 1 + len(_notes(part, unit)))) for part, _ in layers]
    # No box is narrower than any label: how wide it is beyond that shows its size.
    least = LETTER * max(_breadth(line) for part, _ in layers for line in _label(part)) + 2 * MARGIN
    height = sum(rows) + GAP * len(rows) + 30
    drawn, bottom = [], height - 20
    for (part, times), row in zip(layers, rows, strict=True):
        halves = [(least + max(0, WIDEST - least) * size / widest) / 2 for size in part.sizes]
        drawn.append(_layer(part, times, (bottom, row), halves, unit))
        bottom -= row + GAP
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


def _notes(part: Part, unit: str) -> list[str]:
    """What is said of a part below its widths."""
    looks = f"looks back over {counted(part.looks_back, unit)}" if part.looks_back else ""
    carried = f"carries {counted(part.state, 'number')}" if part.state else ""
    return [line for line in (looks, carried) if line]


def _label(part: Part) -> list[str]:
    """The name of a part, in lines."""
    lines: list[str] = []
    for word in part.name.split():
        if lines and _breadth(f"{lines[-1]} {word}") <= LABEL:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _breadth(line: str) -> float:
    """How wide a line is, in parts of the size of its letters."""
    return sum(LETTERS.get(letter, 0.66) for letter in line)


def _layer(part: Part, times: int, place: tuple[float, float], half: Sequence[float], unit: str) -> str:
    """A box (`place`: bottom and height) that follows the widths from input to output, and what is said beside it."""
    bottom, row = place
    heights = [bottom - row * i / (len(half) - 1) for i in range(len(half))]
    right = [f"{CENTRE + h:.0f},{y:.0f}" for h, y in zip(half, heights, strict=True)]
    left = [f"{CENTRE - h:.0f},{y:.0f}" for h, y in zip(half, heights, strict=True)]
    colour = COLOURS.get(part.name.partition(",")[0], 4)
    middle = bottom - row / 2
    notes = " → ".join(f"{size:,}" for size in part.sizes) + (f" · {times} times" if times > 1 else "")
    below = _notes(part, unit)
    # Lines are apart by the size of their letters, which the style sheet knows: around the middle of the box.
    lines = "".join(f'<tspan class="tick" x="380" dy="1.25em">{escape(line)}</tspan>' for line in below)
    label = _label(part)
    first = 0.35 - 0.575 * (len(label) - 1)
    name = "".join(
        f'<tspan x="{CENTRE}" dy="{1.15 if number else first:g}em">{escape(line)}</tspan>'
        for number, line in enumerate(label)
    )
    return (
        f'<polygon class="layer c{colour}" points="{" ".join(right + left[::-1])}"/>'
        f'<text class="inside" x="{CENTRE}" y="{middle:g}" text-anchor="middle">{name}</text>'
        f'<text class="beside-layer" x="380" y="{middle:g}"><tspan x="380" dy="{0.35 - 0.625 * len(below):g}em">'
        f"{escape(notes)}</tspan>{lines}</text>"
    )

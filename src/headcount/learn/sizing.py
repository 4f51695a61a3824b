"""A desk recipe for a text that comes without one: by its length, and by the minutes there are.

Without a budget the text's length decides (`BY_LENGTH`). With one, `sizes.json` does: sizes that were trained on
enwik8 for some minutes (docs/results/sizes.md), how long a byte took them, and a law through their figures,

    L(N, D) = E + A / N^α + B / D^β        N parameters, D bytes read

plus what a size's own runs were above or below it (`benchmarks/sizes.py` makes it). The best size for a budget is the
one of which the fewest bits are expected, on a machine as fast as this one and with a text as long as the one given.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from headcount.recipe import Recipe, from_dict

HELD_OUT_SHARE, HELD_OUT_LEAST, HELD_OUT_MOST = 0.05, 4_096, 0.2
WORTH_OF_REPEATS = 5.0
"""Reading a text again is worth less each time; all repeats together are worth this many first readings. Assumed."""


@dataclass(frozen=True)
class Fit:
    """What suits texts of up to `below` bytes."""

    below: float
    width: int
    dropout: float
    passes: float
    """How often the text is read before a small model has taken what it can from it."""


BY_LENGTH = (
    Fit(20_000, 64, 0.4, 120),
    Fit(200_000, 128, 0.3, 45),
    Fit(2_000_000, 192, 0.15, 10),
    Fit(20_000_000, 256, 0.05, 3),
    Fit(float("inf"), 320, 0.0, 1),
)
MOST_STEPS = 12_000


@dataclass(frozen=True, kw_only=True)
class Size:
    """What a budget decides; the rest is the desk recipe's."""

    width: int
    blocks: int = 1
    window: int = 256
    boom: int = 4
    lr: float = 3e-3
    streams: int = 8
    segment: int = 128

    def tables(self) -> dict[str, dict[str, Any]]:
        """As a recipe has them: the head sits in the last block but one, or in the only one."""
        return {
            "model": {
                "kind": "sha-rnn",
                "width": self.width,
                "blocks": self.blocks,
                "attention": [max(0, self.blocks - 2)],
                "window": self.window,
                "boom": self.boom,
            },
            "batches": {"streams": self.streams, "segment": self.segment},
            "optimiser": {"kind": "adamw", "lr": self.lr},
        }


@dataclass(frozen=True, kw_only=True)
class TimedSize(Size):
    """A row of the table: what was trained, how long a byte took, and how far its runs were above the law."""

    parameters: int
    seconds_per_byte: float
    above_law: float


@dataclass(frozen=True)
class Law:
    """Bits per byte by parameters and bytes read."""

    E: float
    A: float
    alpha: float
    B: float
    beta: float

    def __call__(self, parameters: int, read: float, text: int) -> float:
        """Expected after `read` bytes of a text of so many, of which repeats are worth less and less."""
        fresh = min(read, text)
        repeats = (read - fresh) / text
        worth = fresh + text * WORTH_OF_REPEATS * (1 - math.exp(-repeats / WORTH_OF_REPEATS))
        bits: float = self.E + self.A / parameters**self.alpha + self.B / worth**self.beta
        return bits


UNIFORM = 8.0
"""Bits that a guess among 256 bytes takes: nothing is expected to be worse."""


@cache
def measured_reads() -> tuple[int, int]:
    """The fewest and the most bytes that the law's runs have read; beyond them it was not measured."""
    least, most = _shipped()["read"]
    return least, most


@cache
def table() -> tuple[Law, tuple[TimedSize, ...]]:
    """The law and the sizes, smallest first."""
    data = _shipped()
    sizes = sorted((TimedSize(**row) for row in data["sizes"]), key=lambda size: size.parameters)
    return Law(**data["law"]), tuple(sizes)


def _shipped() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "sizes.json").read_text(encoding="utf-8"))
    return found


def choose(minutes: float, text: int, slowness: float = 1.0) -> TimedSize:
    """The size that is expected to do best in so many minutes; `slowness` is this machine's time over the table's."""
    sizes = table()[1]
    fitting = [size for size in sizes if size.width <= _widest(text)] or sizes[:1]
    return min(fitting, key=lambda size: expected(size, minutes, text, slowness))


def _widest(text: int) -> float:
    """What a text of so many bytes can feed: the table comes from a long one, and a law of it knows no learning by
    heart.
    """
    return _fit(text).width if text < BY_LENGTH[-2].below else math.inf


def expected(size: TimedSize, minutes: float, text: int, slowness: float = 1.0) -> float:
    """Bits per byte of a size after so many minutes."""
    return expected_after(size, minutes * 60 / (size.seconds_per_byte * slowness), text)


def expected_after(size: TimedSize, read: float, text: int) -> float:
    """Bits per byte of a size after so many bytes of a text of so many."""
    return table()[0](size.parameters, read, text) + size.above_law


def _fit(text: int) -> Fit:
    return next(fit for fit in BY_LENGTH if text < fit.below)


def recipe_for(text: int, size: Size | None = None) -> Recipe:
    """The recipe for a text of so many bytes: one head, and a part held out that is never learnt from."""
    fit = _fit(text)
    size = size or Size(width=fit.width)
    held_out = min(max(HELD_OUT_SHARE * text, HELD_OUT_LEAST), HELD_OUT_MOST * text) / text
    steps = min(MOST_STEPS, max(200, round(fit.passes * text * (1 - held_out) / (size.streams * size.segment))))
    tables = size.tables()
    return from_dict(
        {
            **tables,
            "corpus": {"split": [1 - held_out, held_out]},
            "model": {**tables["model"], "dropout": fit.dropout},
            "schedule": {"kind": "cosine", "warmup": 0.05},
            "train": {"steps": steps},
            "evaluate": {"protocol": "carried", "limit": 65_536},
        }
    )


def is_of(recipe: Recipe, size: Size) -> bool:
    """Whether a recipe is of this size: `--set`, or a text that is short, may have made it another."""
    plain = recipe.to_dict()
    wanted = size.tables()
    return all(plain[table][key] == value for table, keys in wanted.items() for key, value in keys.items())


def said(size: TimedSize, minutes: float, text: int, slowness: float, read: int) -> str:
    """What was chosen, how much it will read, what is expected of it, and what twice the time would give."""
    blocks = "1 block" if size.blocks == 1 else f"{size.blocks} blocks"
    # Evaluations and samples take as long in twice the time.
    learning = read * size.seconds_per_byte * slowness
    longer = choose(2 * minutes, text, slowness)
    twice = expected_after(longer, (minutes * 60 + learning) / (longer.seconds_per_byte * slowness), text)
    best = min(table()[1], key=lambda other: expected(other, minutes, text, slowness))
    short = f"; no wider, because the text has only {text:,} bytes" if best.width > size.width else ""
    least, most = measured_reads()
    unsure = "" if least <= read <= most else f"; only runs of {least / 1e6:,.1f} to {most / 1e6:,.0f} MB were measured"
    now, then = (min(bits, UNIFORM) for bits in (expected_after(size, read, text), twice))
    return (
        f"for {minutes:g} minutes here: {blocks} of {size.width}, {size.streams} streams, a window of {size.window} "
        f"({size.parameters / 1e6:.2f}M parameters in use), {read / 1e6:,.2f} MB to read, "
        f"{read / text:,.2f} times the text{short}\nexpected: about {now:.2f} bits per byte if the text is like "
        f"enwik8, where this was measured; in twice the time about {then:.2f}{unsure}"
    )

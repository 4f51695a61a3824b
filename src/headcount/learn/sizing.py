"""A desk recipe for a text that comes without one: width, dropout and steps by its length."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.recipe import Recipe, from_dict

HELD_OUT_SHARE, HELD_OUT_LEAST, HELD_OUT_MOST = 0.05, 4_096, 0.2


@dataclass(frozen=True)
class Size:
    """What suits texts of up to `below` bytes."""

    below: float
    width: int
    dropout: float
    passes: float
    """How often the text is read before a small model has taken what it can from it."""


SIZES = (
    Size(20_000, 64, 0.4, 120),
    Size(200_000, 128, 0.3, 45),
    Size(2_000_000, 192, 0.15, 10),
    Size(20_000_000, 256, 0.05, 3),
    Size(float("inf"), 320, 0.0, 1),
)
MOST_STEPS = 12_000
STREAMS, SEGMENT = 8, 128


def recipe_for(size: int) -> Recipe:
    """The recipe for a text of `size` bytes: one block with one head, and a part held out that is never learnt from."""
    fit = next(s for s in SIZES if size < s.below)
    held_out = min(max(HELD_OUT_SHARE * size, HELD_OUT_LEAST), HELD_OUT_MOST * size) / size
    steps = min(MOST_STEPS, max(200, round(fit.passes * size * (1 - held_out) / (STREAMS * SEGMENT))))
    return from_dict(
        {
            "corpus": {"split": [1 - held_out, held_out]},
            "model": {
                "kind": "sha-rnn",
                "width": fit.width,
                "blocks": 1,
                "attention": [0],
                "window": 256,
                "dropout": fit.dropout,
            },
            "batches": {"streams": STREAMS, "segment": SEGMENT},
            "optimiser": {"kind": "adamw", "lr": 3e-3},
            "schedule": {"kind": "cosine", "warmup": 0.05},
            "train": {"steps": steps},
            "evaluate": {"protocol": "carried", "limit": 65_536},
        }
    )

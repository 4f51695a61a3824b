"""How much context a model uses: the nats of fixed positions, by how many bytes it was fed before them.

A context of c means: an empty state, fed exactly the c bytes before position t, then t scored. (Shrinking a window does
not limit context: L layers see L windows, and a recurrent state sees everything.) A model that begins a new window
after n bytes is fed only the last n of them where c > n, so that it always predicts from as much as it can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError
from headcount.measure.score import score_rows
from headcount.models.contract import Model

Bytes = npt.NDArray[np.uint8]
Nats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

MOST, POSITIONS = 4_096, 2_048


def doubling(most: int) -> tuple[int, ...]:
    """1, 2, 4, 8 … and `most` itself."""
    powers = [1 << i for i in range(most.bit_length())]
    return (*powers, most) if powers[-1] < most else tuple(powers)


def room(size: int, most: int | None, count: int | None) -> tuple[int, int]:
    """The longest context and the number of positions on a text of `size` bytes: what is asked for, or what fits."""
    if size < 2:
        raise RequestError("a text of one byte has no context")
    most = min(MOST, 1 << ((size // 2).bit_length() - 1)) if most is None else most
    if not 1 <= most < size:
        raise RequestError(f"a context of {most:,}: must be from 1 to {size - 1:,}, the text has {size:,} bytes")
    count = min(POSITIONS, size - most) if count is None else count
    if not 1 <= count <= size - most:
        raise RequestError(
            f"{count:,} positions: must be from 1 to {size - most:,}, the text has {size:,} bytes and each needs "
            f"{most:,} before it"
        )
    return most, count


def fixed_positions(size: int, most: int, count: int, seed: int = 0) -> Places:
    """`count` places in a text of `size` bytes with `most` bytes before each: one in each of so many equal stretches.

    A function of its arguments only, so that every model is measured at the same places.
    """
    edges = most + np.arange(count + 1) * (size - most) // count
    drawn = np.random.default_rng(seed).random(count)
    return edges[:-1] + (drawn * np.diff(edges)).astype(np.int64)


def bytes_fed(model: Model, context: int) -> int:
    """How many of the bytes of a context a model is given."""
    return min(context, model.restarts_after or context)


def at_context(model: Model, text: Bytes, positions: Places, context: int) -> Nats:
    """Nats of the bytes at the positions, each after the `context` bytes before it and nothing else."""
    fed = bytes_fed(model, context)
    places = positions[:, None]
    nats: Nats = score_rows(model, text[places - fed + np.arange(fed)], text[places])[:, 0]
    return nats


def nats_by_context(
    model: Model,
    text: Bytes,
    positions: Places,
    contexts: Iterable[int],
    tell: Callable[[int], None] = lambda context: None,
) -> Nats:
    """Contexts × positions; `tell` hears of every context before it is measured.

    Contexts beyond the point where the model begins anew are what it is given there, and are measured once.
    """
    known: dict[int, Nats] = {}
    rows: list[Nats] = []
    for context in contexts:
        fed = bytes_fed(model, context)
        if fed not in known:
            tell(context)
            known[fed] = at_context(model, text, positions, fed)
        rows.append(known[fed])
    return np.stack(rows)

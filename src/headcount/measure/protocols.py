"""How a figure is measured, by name. No number travels without its protocol.

Nats are summed, bytes are counted, one is divided by the other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError, nearest
from headcount.measure.score import SEGMENT, score_lanes
from headcount.models.contract import Model

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Protocol:
    """A way to measure."""

    about: str
    streams: Callable[[str, int], int]
    """How many streams, given the split's name and the model's number of heads."""
    segment: int
    scores_first: bool
    """Whether a stream's first byte is predicted (after a newline) or only fed."""


PROTOCOLS: Mapping[str, Protocol] = {
    "carried": Protocol("one stream, state carried, every byte scored", lambda split, heads: 1, SEGMENT, True),
    # The published code: the training batch on valid (16 for one head, 8 for four), 8 on test; every stream begins
    # cold, its first byte is fed but not scored, and the remainder of the division is dropped.
    "merity2019": Protocol(
        "16 streams on valid (8 for four heads), 8 on test, segments of 1,024, first bytes not scored",
        lambda split, heads: 16 if split == "valid" and heads < 4 else 8,
        1_024,
        False,
    ),
}


@dataclass(frozen=True)
class Measurement:
    """What a protocol found: the sums behind a figure, and how they came about."""

    nats: float
    bytes: int
    sha256: str
    """Of the text that was given."""
    protocol: Mapping[str, Any]

    @property
    def bits_per_byte(self) -> float:
        """The figure itself."""
        return self.nats / math.log(2) / self.bytes


def find(name: str) -> Protocol:
    """The protocol behind a name."""
    if name not in PROTOCOLS:
        raise RequestError(f"protocol {name!r}: {nearest(name, PROTOCOLS)}")
    return PROTOCOLS[name]


def streams_of(model: Model, size: int, *, name: str, split: str, window: int | None = None) -> int:
    """How many streams a protocol makes of `size` bytes; what cannot be measured with this model is refused."""
    protocol = find(name)
    streams = protocol.streams(split, model.heads)
    if size // streams < (1 if protocol.scores_first else 2):
        raise RequestError(f"{size} bytes are too few for the {streams} streams of protocol {name}")
    longest = model.longest_segment(window)
    if longest is not None and protocol.segment > longest and name != "carried":
        raise RequestError(f"protocol {name} feeds segments of {protocol.segment}; this model takes {longest} at most")
    return streams


def measure(
    model: Model,
    text: Bytes,
    *,
    name: str,
    start: int,
    split: str = "text",
    window: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> Measurement:
    """Bits per byte of a text under the protocol `name`."""
    protocol, config = find(name), model.config
    streams = streams_of(model, len(text), name=name, split=split, window=window)
    length, longest = len(text) // streams, model.longest_segment(window)
    lanes = text[: streams * length].reshape(streams, length)
    nats, count = 0.0, 0
    pieces = score_lanes(
        model,
        lanes,
        start=start if protocol.scores_first else None,
        window=window,
        segment=protocol.segment,
        check=check,
    )
    for piece in pieces:
        nats += float(piece.sum())
        count += piece.size
    facts = {
        "name": name,
        "streams": streams,
        "segment": min(protocol.segment, longest or protocol.segment),
        "window": window if window is not None else getattr(config, "window", None),
        "window_rule": getattr(config, "window_rule", None),
        "state": "carried",
        "cold_starts": streams,
        "not_scored": len(text) - count,
    }
    return Measurement(nats, count, hashlib.sha256(text.data).hexdigest(), facts)

"""How a figure is measured, by name. No number travels without its protocol.

Nats are summed, bytes are counted, one is divided by the other. What a protocol leaves open (segment, window, clamp)
comes from the recipe's `[evaluate]` or from the command.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError, nearest
from headcount.measure.score import SEGMENT, score_lanes
from headcount.measure.sliding import score_sliding
from headcount.models.contract import Model
from headcount.tables import EvaluateTable
from headcount.text.encoding import Encoded

Nats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A way to measure."""

    about: str
    streams: Callable[[str, int], int] = lambda split, heads: 1
    """How many streams, given the split's name and the model's number of heads."""
    segment: int = SEGMENT
    scores_first: bool = True
    """Whether a stream's first byte is predicted (after a newline) or only fed."""
    stride: int | None = None
    """Windows that are recomputed, so many bytes apart, instead of carried state."""
    rule: str | None = None
    """The window rule of models that can be measured under another than their own."""


PROTOCOLS: Mapping[str, Protocol] = {
    "carried": Protocol(about="one stream, state carried, every byte scored"),
    # The published code: the training batch on valid (16 for one head, 8 for four), 8 on test; every stream begins
    # cold, its first byte is fed but not scored, and the remainder of the division is dropped.
    "merity2019": Protocol(
        about="16 streams on valid (8 for four heads), 8 on test, segments of 1,024, first bytes not scored",
        streams=lambda split, heads: 16 if split == "valid" and heads < 4 else 8,
        segment=1_024,
        scores_first=False,
    ),
    # The published PyTorch scripts: `same_length`, so that every query sees the same number of keys.
    "dai2019": Protocol(
        about="10 streams; the recipe's segments, window, clamp; exact if there is a choice; first bytes not scored",
        streams=lambda split, heads: 10,
        segment=128,
        scores_first=False,
        rule="exact",
    ),
    "alrfou2018": Protocol(about="a window for every byte, recomputed: sliding-1", stride=1),
}
SLIDING, MOST_STRIDE = "sliding-S", 9_999_999


@dataclass(frozen=True)
class Measurement:
    """What a protocol found: the sums behind a figure, and how they came about."""

    nats: float
    bytes: int
    sha256: str
    """Of the text that was given."""
    protocol: Mapping[str, Any]
    tokens: Mapping[str, Any]
    """Their kind, how many there are of them, the hash of what they learnt, how many were scored, and whether the text
    can be restored from them (if not, these bits are not enough to write it down)."""

    @property
    def bits_per_byte(self) -> float:
        """The figure itself."""
        return self.nats / math.log(2) / self.bytes


def find(name: str) -> Protocol:
    """The protocol behind a name; `sliding-64` is a name for every stride."""
    if stride := re.fullmatch(r"sliding-([1-9]\d{0,6})", name):
        return Protocol(about="windows recomputed, S bytes apart; each scores its last S", stride=int(stride[1]))
    if name.startswith("sliding"):
        raise RequestError(
            f"protocol {name!r}: it is called {SLIDING}, where S is a whole number from 1 to {MOST_STRIDE:,}"
        )
    if name not in PROTOCOLS:
        raise RequestError(f"protocol {name!r}: {nearest(name, (*PROTOCOLS, SLIDING))}")
    return PROTOCOLS[name]


def limits(model: Model, how: EvaluateTable) -> dict[str, Any]:
    """What `start` is given: the limits that are set, and the protocol's rule where a model has a choice."""
    given = {"window": how.window, "clamp": how.clamp}
    for name, value in given.items():
        if value is not None and name not in model.limits:
            raise RequestError(f"{name} = {value}: this model has no {name}")
    rule = find(how.protocol).rule if "rule" in model.limits else None
    return {name: value for name, value in {**given, "rule": rule}.items() if value is not None}


def context_of(model: Model, how: EvaluateTable) -> int:
    """How many bytes a sliding window holds: `window`, or where the model begins anew, or its own window."""
    context = how.window or model.restarts_after or getattr(model.config, "window", None)
    if context is None:
        raise RequestError(f"protocol {how.protocol} needs a window: this model has none of its own")
    return int(min(context, model.restarts_after or context))


def require(model: Model, size: int, how: EvaluateTable, *, split: str) -> None:
    """Refuse what cannot be measured with this model on `size` tokens."""
    protocol = find(how.protocol)
    limits(model, how)
    if protocol.stride is not None:
        context, longest = context_of(model, how), model.longest_segment(how.window)
        if protocol.stride > context:
            raise RequestError(
                f"protocol {how.protocol}: a window of {context} is shorter than the stride; "
                "windows below it are measured with --protocol carried"
            )
        if how.segment is not None:
            raise RequestError(f"segment = {how.segment}: protocol {how.protocol} feeds whole windows")
        if longest is not None and context > longest:
            raise RequestError(
                f"protocol {how.protocol} feeds windows of {context}; this model takes {longest} at most"
            )
        return
    if how.window is not None and not model.heads:
        raise RequestError(f"window = {how.window}: this model has no head that a window could limit")
    streams = protocol.streams(split, model.heads)
    if size // streams < (1 if protocol.scores_first else 2):
        raise RequestError(f"{size} tokens are too few for the {streams} streams of protocol {how.protocol}")
    longest, segment = model.longest_segment(how.window), how.segment or protocol.segment
    if longest is not None and segment > longest and how.protocol != "carried":
        raise RequestError(f"protocol {how.protocol} feeds segments of {segment}; this model takes {longest} at most")


def measure(
    model: Model,
    text: Encoded,
    how: EvaluateTable,
    *,
    split: str = "text",
    check: Callable[[], None] = lambda: None,
) -> Measurement:
    """Bits per byte of a text: the nats of its tokens over its bytes."""
    require(model, len(text.ids), how, split=split)
    ways = _slide if find(how.protocol).stride is not None else _carry
    pieces, left_out, facts = ways(model, text, how, split=split, check=check)
    nats, count = 0.0, 0
    for piece in pieces:
        nats += float(piece.sum())
        count += piece.size
    facts = {"name": how.protocol, **facts, "not_scored": left_out}
    kind = text.tokens
    tokens = {"kind": kind.kind, "vocabulary": kind.vocabulary, "sha256": kind.sha256, "scored": count}
    return Measurement(nats, text.bytes - left_out, text.sha256, facts, {**tokens, "exact": text.exact})


Way = tuple[Iterator[Nats], int, dict[str, Any]]
"""Nats as they come, the bytes that are left out, and what the protocol says of itself."""


def _carry(model: Model, text: Encoded, how: EvaluateTable, *, split: str, check: Callable[[], None]) -> Way:
    """Streams with carried state."""
    protocol, given = find(how.protocol), limits(model, how)
    streams = protocol.streams(split, model.heads)
    length, longest = len(text.ids) // streams, model.longest_segment(how.window)
    segment = how.segment or protocol.segment
    segment = min(segment, longest or segment)
    lanes = text.ids[: streams * length].reshape(streams, length)
    first = text.tokens.start if protocol.scores_first else None
    pieces = score_lanes(model, lanes, start=first, limits=given, segment=segment, check=check)
    window = how.window if how.window is not None else getattr(model.config, "window", None)
    looks = model.heads > 0  # without a head there is nothing that a window could limit
    restarts = model.restarts_after and min(model.restarts_after, how.window or model.restarts_after)
    return (
        pieces,
        _left_out(text, streams, length, protocol.scores_first),
        {
            "streams": streams,
            "segment": segment,
            "window": window if looks and not restarts else None,
            "window_rule": (given.get("rule") or getattr(model.config, "window_rule", None)) if looks else None,
            **_clamp(model, how),
            **({"restarts_after": restarts} if restarts else {}),
            "state": "carried",
            "cold_starts": streams,
        },
    )


def _left_out(text: Encoded, streams: int, length: int, scores_first: bool) -> int:
    """Bytes of the tokens that are not scored: what a division leaves over, and first tokens that are only fed."""
    places = np.arange(streams * length, len(text.ids))
    if not scores_first:
        places = np.concatenate([np.arange(streams) * length, places])
    return text.bytes_of(text.ids[places], None if text.spans is None else text.spans[places])


def _clamp(model: Model, how: EvaluateTable) -> dict[str, int]:
    """The clamp that was in force, if any."""
    clamp = how.clamp or getattr(model.config, "clamp", None)
    return {"clamp": clamp} if clamp else {}


def _slide(model: Model, text: Encoded, how: EvaluateTable, *, split: str, check: Callable[[], None]) -> Way:
    """Windows, each from an empty state."""
    stride, context = find(how.protocol).stride or 1, context_of(model, how)
    given = limits(model, how)
    start, slides = text.tokens.start, {"context": context, "stride": stride}
    pieces = score_sliding(model, text.ids, start=start, **slides, limits=given, check=check)
    return (
        pieces,
        0,
        {
            "streams": 1,
            "segment": context,
            "window": context,
            "window_rule": "sliding",
            "stride": stride,
            **_clamp(model, how),
            "state": "recomputed",
            "cold_starts": 1 + max(0, -(-(len(text.ids) - context) // stride)),
        },
    )

"""A figure: a value that carries its protocol, its corpus, its model and the command that gives it again."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headcount.counted import counted
from headcount.measure.protocols import Measurement
from headcount.text.encoding import Encoded

BITS_PER_BYTE = "bits per byte"


def unit_of(exact: bool) -> str:
    """What bits are counted in; where the text cannot be restored from its tokens, they do not write it down."""
    return BITS_PER_BYTE if exact else f"{BITS_PER_BYTE}, not lossless"


def per_byte(bits: float, text: Encoded) -> tuple[float, str]:
    """What the bits of a whole text come to, and the unit: over the bytes that figures of its tokens are over."""
    return bits / max(text.bytes, 1), unit_of(text.exact)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Bits per byte and everything that is needed to check it."""

    value: float
    unit: str = BITS_PER_BYTE
    nats: float
    bytes: int
    protocol: Mapping[str, Any]
    corpus: Mapping[str, Any]
    """name, split, sha256 of the bytes that were given, their number, and how many characters, words … they are."""
    tokens: Mapping[str, Any]
    """Their kind, how many symbols there are, how many were scored, and whether the text can be restored from them."""
    model: Mapping[str, Any]
    """kind, parameters in use, the checkpoint's step and the sha256 of its weights."""
    command: str
    date: str = field(default_factory=_now)

    @classmethod
    def of(cls, measured: Measurement, **rest: Any) -> Figure:
        """The figure of a measurement."""
        return cls(
            value=measured.bits_per_byte,
            unit=unit_of(measured.tokens["exact"]),
            nats=measured.nats,
            bytes=measured.bytes,
            protocol=measured.protocol,
            tokens=measured.tokens,
            **rest,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {key: dict(v) if isinstance(v, Mapping) else v for key, v in dataclasses.asdict(self).items()}

    def __str__(self) -> str:
        """One line: the value never without its protocol."""
        corpus, model = self.corpus, self.model
        scored, kind = self.tokens["scored"], self.tokens["kind"]
        read = ""
        if kind != "bytes":
            perplexity = f"perplexity {math.exp(self.nats / scored):,.2f}" if scored else "nothing"
            read = f" · {counted(scored, 'token')} ({kind}, {self.tokens['vocabulary']:,} symbols): {perplexity}"
            read += "" if self.tokens["exact"] else "; the text cannot be restored from them"
        step = "" if model["step"] is None else f" step {model['step']:,}"
        return (
            f"{self.value:.4f} {self.unit} · {in_words(self.protocol)} · {corpus['name']} {corpus['split']}, "
            f"{counted(self.bytes, 'byte')}, sha256 {corpus['sha256'][:12]}{read} · {model['kind']}{step}, "
            f"weights {model['sha256'][:12]}"
        )


def in_words(protocol: Mapping[str, Any], *, with_window: bool = True) -> str:
    """How a figure was measured, for a person; without the window, and what it decides, where several are compared."""
    said = f"{protocol['name']}: " + ("1 stream" if protocol["streams"] == 1 else f"{protocol['streams']} cold streams")
    if with_window or protocol["state"] == "carried":  # windows that are recomputed are fed whole
        said += f", segments of {protocol['segment']:,}"
    said += f", state {protocol['state']}"
    if protocol["window"] and with_window:
        said += f", window {protocol['window']:,} ({protocol['window_rule']})"
    for name in ("clamp", "stride", "restarts_after"):
        said += f", {name.replace('_', ' ')} {protocol[name]:,}" if protocol.get(name) else ""
    return said + (f", {counted(protocol['not_scored'], 'byte')} not scored" if protocol["not_scored"] else "")

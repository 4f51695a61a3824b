"""How bytes become tokens. A token kind says how many symbols there are and what a stream begins after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError
from headcount.tables import TokensTable

Array = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Bytes:
    """Every byte is a token: any text is legal, nothing is unknown, and tokens are bytes."""

    kind: str = "bytes"
    vocabulary: int = 256
    start: int = 10
    """Every stream begins after a newline, so that its first byte has a probability too."""

    def encode(self, text: bytes) -> Array:
        """The tokens of a text."""
        return np.frombuffer(text, dtype=np.uint8)


def find(table: TokensTable) -> Bytes:
    """The tokens that a recipe names."""
    if table.kind != "bytes":
        raise RequestError(f"tokens.kind = {table.kind!r} is not built yet: only bytes are")
    return Bytes()

"""Bytes for a person's eyes: valid text as it is, everything that could disturb a terminal escaped."""

from __future__ import annotations

import codecs
import unicodedata


class Escaper:
    """Decodes UTF-8 as it arrives; control characters and bytes that are no UTF-8 become \\x1b and the like."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def __call__(self, piece: bytes, *, final: bool = False) -> str:
        """What can be shown so far."""
        return "".join(map(_shown, self._decoder.decode(piece, final)))


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Zl", "Zp"):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())

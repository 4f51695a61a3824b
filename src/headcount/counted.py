"""A number and what it counts, as one says it."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 byte`, `2 bytes`, `1,200 steps`; for nouns that take an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

"""A number and what it counts, as one says it."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 byte`, `2 bytes`, `1,200 steps`; for nouns that take an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def in_seconds(duration: float) -> str:
    """`0.4`, `9.9`, `10`, `1,200`: a short one with a decimal, or it would be nothing."""
    return f"{duration:,.1f}" if duration < 9.95 else f"{duration:,.0f}"

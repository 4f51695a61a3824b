"""What the numbers say of the tokenisation attack: the answer first, then what it rests on; every sentence is computed.

A part of the worry is accounting if it goes away once all bits are counted over equal bytes; what stays is real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Run = Mapping[str, Any]
SURE = 2.0
"""Standard errors from which on a difference counts."""
UNEVEN = 0.1
"""Seconds that were to be equal may differ by so much before it is said."""
NOTHING = 0.0005
"""A share below it is called nothing."""


def verdict(record: Mapping[str, Any]) -> str:
    """Which part of the worry is accounting, and which is real."""
    runs: Sequence[Run] = record["runs"]
    parts = [
        _answer(runs),
        _accounting(runs, record["held_out"]["bytes"]),
        _learnt(runs, "bytes"),
        _learnt(runs, "seconds"),
        _canonical(runs),
        _places(runs),
        _feedback(runs, record["most_guesses"]),
        _spellings(runs),
        _names(runs),
    ]
    return "\n\n".join(part for part in parts if part)


def name_of(run: Run) -> str:
    """What a run is called in a sentence: its tokens."""
    return str(run["tokens"]["name"])


def group(runs: Sequence[Run], budget: str) -> list[Run]:
    """The runs of one budget; bytes, which set it, belong to both."""
    return [run for run in runs if run["budget"] == budget or run["tokens"]["kind"] == "bytes"]


def opening_share(run: Run) -> tuple[float, float]:
    """Of the bits and of the bytes of words, what falls to the byte before a word and to its first letter."""
    bits, count = (sum(place[key] for place in run["places"]) for key in ("bits", "count"))
    first = [place for place in run["places"] if place["place"] <= 1]
    return sum(place["bits"] for place in first) / bits, sum(place["count"] for place in first) / count


def _answer(runs: Sequence[Run]) -> str:
    """Which part is accounting, and which is real."""
    sure = [
        f"{name_of(run)} {'better' if run['against_bytes']['difference'] < 0 else 'worse'} at equal {budget}"
        for budget in ("bytes", "seconds")
        for run in group(runs, budget)
        if run["tokens"]["kind"] != "bytes" and is_sure(run)
    ]
    real = [f"what was learnt ({', '.join(sure)} than bytes)"] if sure else []
    real += ["that bits sit at the beginning of words"] if _sit_at_the_beginning(group(runs, "bytes")) else []
    real += ["that guessing is easier with feedback"] if _all_easier(group(runs, "bytes")) else []
    found = f"Real is {_listed(real)}" if real else "Nothing else of it could be measured here"
    return (
        "Of the paper's worry, the part about comparing figures is accounting: none of it is left once all bits are "
        f"counted over equal bytes. {found}."
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _sit_at_the_beginning(alike: Sequence[Run]) -> bool:
    return all(share > size for share, size in map(opening_share, alike))


def _all_easier(alike: Sequence[Run]) -> bool:
    """Whether a word takes fewer guesses with feedback under every kind that has more than one piece a word."""
    cut = [run["guesses"] for run in alike if run["guesses"]["words"] and run["tokens"]["kind"] != "words"]
    return bool(cut) and all(found["with"]["guesses"] < found["without"]["guesses"] for found in cut)


def _accounting(runs: Sequence[Run], size: int) -> str:
    """Perplexity per token against bits over equal bytes."""
    alike = group(runs, "bytes")
    by_token = sorted(alike, key=lambda run: float(run["perplexity_per_token"]))
    by_byte = sorted(alike, key=lambda run: float(run["bits_per_byte"]))
    low, high = by_token[0], by_token[-1]
    factor = high["perplexity_per_token"] / low["perplexity_per_token"]
    same = [name_of(run) for run in by_token] == [name_of(run) for run in by_byte]
    order = (
        "Here bits put them into the same order, but by other distances"
        if same
        else f"Bits put them into another order: {', '.join(name_of(run) for run in by_byte)}"
    )
    return (
        f"Accounting: per token, perplexity runs from {low['perplexity_per_token']:,.1f} ({name_of(low)}) to "
        f"{high['perplexity_per_token']:,.1f} ({name_of(high)}), a factor of {factor:,.0f}; over the same {size:,} "
        f"bytes all lie between {by_byte[0]['bits_per_byte']:.3f} and {by_byte[-1]['bits_per_byte']:.3f} bits per "
        f"byte. {order}. The bits of a word's pieces add up to the bits of the word, whatever is told in between; of "
        f"bytes this was checked, to {_chain_rule(runs):.0e} bits."
    )


def _chain_rule(runs: Sequence[Run]) -> float:
    """By how much bytes missed the chain rule, at most."""
    return max(float(run["overstated"]["deviation"]) for run in runs if run["tokens"]["kind"] == "bytes")


def _learnt(runs: Sequence[Run], budget: str) -> str:
    """Differences in total bits: what a model learnt, not how it was counted."""
    others = [run for run in group(runs, budget) if run["tokens"]["kind"] != "bytes"]
    if not others:
        return ""
    said = [f"{name_of(run)} {_difference(run)}" for run in others]
    uneven = ""
    if budget == "seconds":
        (plain,) = (run for run in runs if run["tokens"]["kind"] == "bytes")
        far = [run for run in others if abs(run["seconds"] / plain["seconds"] - 1) > UNEVEN]
        uneven = "".join(
            f" ({name_of(run)} learnt for {run['seconds']:,.0f} seconds where bytes had {plain['seconds']:,.0f})"
            for run in far
        )
    return f"Learning, at equal {budget}, against bytes: {'; '.join(said)}{uneven}."


def _difference(run: Run) -> str:
    apart, error = run["against_bytes"]["difference"], run["against_bytes"]["error"]
    if abs(apart) <= SURE * error:
        return f"no different beyond its error ({apart:+.3f} ± {error:.3f} bits per byte)"
    return f"{'better' if apart < 0 else 'worse'} by {abs(apart):.3f} ± {error:.3f} bits per byte"


def is_sure(run: Run) -> bool:
    """Whether a run differs from the bytes by more than its error."""
    apart = run["against_bytes"]
    return bool(abs(apart["difference"]) > SURE * apart["error"])


def _canonical(runs: Sequence[Run]) -> str:
    """What other segmentations would give back."""
    pieces = [run for run in group(runs, "bytes") if run["tokens"]["kind"] == "wordpieces" and run["overstated"]]
    if not pieces:
        return ""
    said = [f"{run['overstated']['share']:.2%} ({name_of(run)})" for run in pieces]
    if all(run["overstated"]["share"] < NOTHING for run in pieces):
        return (
            f"Counting only the canonical segmentation overstates a word's bits by next to nothing: {', '.join(said)}."
        )
    return (
        f"Counting only the canonical segmentation charges wordpieces too much, not too little: {', '.join(said)} of "
        "the bits of a word are other ways to write it, so this part of the worry points the other way."
    )


def _places(runs: Sequence[Run]) -> str:
    """Do the first characters carry most?"""
    alike = group(runs, "bytes")
    shares = [f"{opening_share(run)[0]:.0%} ({name_of(run)})" for run in alike]
    size = opening_share(alike[0])[1]
    right = _sit_at_the_beginning(alike)
    agrees = (
        "That bits sit at the beginning of words is right" if right else "Bits do not sit at the beginning under all"
    )
    return (
        f"{agrees}: the byte before a word and its first letter are {size:.0%} of its bytes and take "
        f"{', '.join(shares)} of its bits."
    )


def _feedback(runs: Sequence[Run], most: int) -> str:
    """The password: guesses with an answer after each piece against guesses of whole words."""
    alike = [run for run in group(runs, "bytes") if run["guesses"]["words"]]
    if not alike:
        return ""
    told = ", ".join(f"{run['guesses']['with']['guesses']:.1f} ({name_of(run)})" for run in alike)
    whole = ", ".join(f"{run['guesses']['without']['guesses']:.1f} ({name_of(run)})" for run in alike)
    first = [run["guesses"]["without"]["first"] for run in alike]
    words = min(run["guesses"]["words"] for run in alike)
    error = (max(first) * (1 - max(first)) / words) ** 0.5
    apart = max(first) - min(first)
    close = (
        f"whole words are right at once about equally often under all ({min(first):.0%} to {max(first):.0%} of {words})"
        if apart <= SURE * 2**0.5 * error
        else f"whole words are right at once in {min(first):.0%} to {max(first):.0%} of {words} cases"
    )
    sense = "is real for guessing" if _all_easier(alike) else "does not hold for all kinds here"
    return (
        f"The password {sense}: a word takes {told} guesses if every piece is answered, and {whole} if only whole "
        f"words are (given up after {most}). Bits multiply probabilities, as guessing whole words does, and {close}."
    )


def _spellings(runs: Sequence[Run]) -> str:
    """specialized or specialised."""
    alike = group(runs, "bytes")
    count = len(alike[0]["spellings"]["cases"])
    if not count:
        return "The held-out text has no word of which the corpus knows an -ize and an -ise."
    costs = [run["spellings"]["choice"] for run in alike]
    said = ", ".join(f"{cost:.2f} ({name_of(run)})" for run, cost in zip(alike, costs, strict=True))
    few = " (too few to rank them)" if count < 10 else ""
    return (
        f"Which of two spellings (-ize or -ise) it is costs {said} bits in {count} place{'s' * (count != 1)}{few}: "
        "every kind pays for that choice, at one letter or at the whole word."
    )


def _names(runs: Sequence[Run]) -> str:
    """Names that come back."""
    alike = [run for run in group(runs, "bytes") if run["names"]["later"]["bits"] and run["names"]["first"]["bits"]]
    if not alike:
        return "No name comes back in the held-out text."
    said = ", ".join(
        f"{run['names']['first']['bits']:.1f} and {run['names']['later']['bits']:.1f} ({name_of(run)})" for run in alike
    )
    shares = [1 - run["names"]["later"]["bits"] / run["names"]["first"]["bits"] for run in alike]
    best = name_of(alike[shares.index(max(shares))])
    gains = f"the saving is largest for {best}" if max(shares) > 0 else "none of these models copies yet"
    return f"A name costs so many bits at first and when it was read before: {said}; {gains}."

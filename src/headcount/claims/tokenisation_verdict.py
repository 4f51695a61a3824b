"""What the numbers say of the tokenisation attack: the answer first, then what it rests on; every sentence is computed.

A part of the worry is accounting if it goes away once all bits are counted over equal bytes; what stays is real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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


def standard_error(values: npt.NDArray[np.float64]) -> float:
    """Of a mean; of fewer than two values none is known, and 0 is said."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def name_of(run: Run) -> str:
    """What a run is called in a sentence: its tokens."""
    return str(run["tokens"]["name"])


def group(runs: Sequence[Run], budget: str) -> list[Run]:
    """The runs of one budget; bytes, which set it, belong to both."""
    return [run for run in runs if run["budget"] == budget or run["tokens"]["kind"] == "bytes"]


def first_letter(run: Run) -> tuple[float, float]:
    """What first letters take of the bits of all letters, and what share of the letters they are."""
    letters = [place for place in run["places"] if place["place"] > 0]
    bits, count = (sum(place[key] for place in letters) for key in ("bits", "count"))
    first = [place for place in letters if place["place"] == 1]
    return sum(place["bits"] for place in first) / bits, sum(place["count"] for place in first) / count


def _answer(runs: Sequence[Run]) -> str:
    """Which part is accounting, and which is real."""
    sure = [
        f"{_listed(names)} {better} at equal {budget}"
        for budget in ("bytes", "seconds")
        for better, names in _beyond_error(group(runs, budget)).items()
        if names
    ]
    real = [f"what was learnt (against bytes: {'; '.join(sure)})"] if sure else []
    real += ["that bits sit at the beginning of words"] if _sit_at_the_beginning(group(runs, "bytes")) else []
    helped = _helped(group(runs, "bytes"))
    real += [f"that guessing is easier with feedback ({', '.join(helped)})"] if helped else []
    found = f"Real is {_listed(real)}" if real else "Nothing else of it could be measured here"
    return (
        "Of the paper's worry, the part about comparing figures is accounting: none of it is left once all bits are "
        f"counted over equal bytes. {found}."
    )


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _sit_at_the_beginning(alike: Sequence[Run]) -> bool:
    return all(share > size for share, size in map(first_letter, alike))


def _helped(alike: Sequence[Run]) -> list[str]:
    """Under which kinds a word takes fewer guesses with feedback, beyond the error."""
    saved = ((run, run["guesses"]["saved"]) for run in alike if run["guesses"]["words"])
    return [name_of(run) for run, found in saved if found["guesses"] > SURE * found["error"]]


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
        f"byte. {order}. The bits of a word's pieces add up to the bits of the word, whatever is told in "
        f"between{_chain_rule(runs)}."
    )


def _chain_rule(runs: Sequence[Run]) -> str:
    """By how much bytes missed the chain rule, at most, if a word was there to check it."""
    (plain,) = (run["overstated"] for run in runs if run["tokens"]["kind"] == "bytes")
    return f"; of bytes this was checked, to {plain['deviation']:.0e} bits" if plain["words"] else ""


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


def _beyond_error(alike: Sequence[Run]) -> dict[str, list[str]]:
    """Which kinds differ from bytes by more than their error, by direction."""
    apart = [(run, run["against_bytes"]) for run in alike if run["tokens"]["kind"] != "bytes"]
    sure = [
        (name_of(run), found["difference"]) for run, found in apart if abs(found["difference"]) > SURE * found["error"]
    ]
    return {
        "better": [name for name, difference in sure if difference < 0],
        "worse": [name for name, difference in sure if difference > 0],
    }


def _canonical(runs: Sequence[Run]) -> str:
    """What other segmentations would give back."""
    pieces = [
        run for run in group(runs, "bytes") if run["tokens"]["kind"] == "wordpieces" and run["overstated"]["words"]
    ]
    if not pieces:
        return ""
    said = [
        f"{run['overstated']['share']:.2%} ± {run['overstated']['error'] / run['overstated']['canonical']:.2%} "
        f"({name_of(run)})"
        for run in pieces
    ]
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
    shares = [f"{first_letter(run)[0]:.0%} ({name_of(run)})" for run in alike]
    size = first_letter(alike[0])[1]
    agrees = (
        "Bits do sit at the beginning of words" if _sit_at_the_beginning(alike) else "Bits do not sit at the beginning"
    )
    return (
        f"{agrees}: first letters are {size:.0%} of all letters and take {', '.join(shares)} of their bits, however "
        "the text is cut into tokens."
    )


def _feedback(runs: Sequence[Run], most: int) -> str:
    """The password: guesses with an answer after each piece against guesses of whole words."""
    alike = [run for run in group(runs, "bytes") if run["guesses"]["words"]]
    if not alike:
        return ""
    counts = "; ".join(
        f"{name_of(run)} {run['guesses']['without']['guesses']:.1f} and {run['guesses']['with']['guesses']:.1f}"
        for run in alike
    )
    helped = _helped(alike)
    others = [name_of(run) for run in alike if name_of(run) not in helped]
    sense = f"helps under {_listed(helped)}" if helped else "does not measurably help under any kind"
    sense += f" and not measurably under {_listed(others)}" if helped and others else ""
    first = sorted((run["guesses"]["without"]["first"], name_of(run)) for run in alike)
    (low, worst), (high, best) = first[0], first[-1]
    words = min(run["guesses"]["words"] for run in alike)
    error = ((high * (1 - high) + low * (1 - low)) / words) ** 0.5
    close = (
        f"about equally often under all kinds ({low:.0%} to {high:.0%} of {words})"
        if high - low <= SURE * error
        else f"in {low:.0%} ({worst}) to {high:.0%} ({best}) of {words} cases"
    )
    return (
        f"The password: an answer after every piece {sense}. Guesses for a whole word, and by pieces (given up after "
        f"{most}): {counts}. But bits multiply the probabilities of pieces, as guessing the whole does, and whole "
        f"words are right at once {close}."
    )


def _spellings(runs: Sequence[Run]) -> str:
    """specialized or specialised."""
    alike = group(runs, "bytes")
    count = len(alike[0]["spellings"]["cases"])
    if not count:
        return "The held-out text has no word of which the corpus knows an -ize and an -ise."
    said = ", ".join(f"{run['spellings']['choice']:.2f} ({name_of(run)})" for run in alike)
    plain = [case["choice"] for case in alike[0]["spellings"]["cases"]]
    dearer = []
    for run in alike[1:]:
        apart = np.subtract([case["choice"] for case in run["spellings"]["cases"]], plain)
        if count > 1 and abs(apart.mean()) > SURE * standard_error(apart):
            dearer.append(f"{'dearer' if apart.mean() > 0 else 'cheaper'} under {name_of(run)} than under bytes")
    sense = f"it is {_listed(dearer)}" if dearer else "the kinds do not differ beyond the error"
    return (
        f"Which of two spellings (-ize or -ise) stands in the text costs {said} bits, in {count} "
        f"place{'s' * (count != 1)}; {sense}. Every kind pays for it in its total bits, at a letter or at a piece."
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

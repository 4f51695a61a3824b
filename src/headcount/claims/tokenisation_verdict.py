"""What the numbers say of the tokenisation attack: the answer first, then what it rests on; every sentence is computed.

A part of the worry is accounting if it goes away once all bits are counted over equal bytes; what stays is real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headcount.claims.evidence import is_sure, margin, plus_minus, standard_error

Run = Mapping[str, Any]
UNEVEN = 0.1
"""Seconds that were to be equal may differ by so much; a run that is further off is not judged."""
NOTHING = 0.0005
"""A share below it is called nothing."""
CHAIN_RULE = 1e-3
"""Bits by which bytes may miss it: two orders of summing in float32."""
ADDS_UP = 1e-4
"""Share of all bits by which those of the tokens may miss them, for the same reason."""


def verdict(record: Mapping[str, Any]) -> str:
    """Which part of the worry is accounting, and which is real."""
    runs: Sequence[Run] = record["runs"]
    parts = [
        _answer(runs, record["held_out"]),
        _accounting(runs, record["held_out"]),
        _same(record["left_out"]),
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


def uneven(runs: Sequence[Run]) -> list[Run]:
    """The runs at equal seconds that did not have them: on a machine that others use, steps take now more, now less."""
    (plain,) = (run for run in runs if run["tokens"]["kind"] == "bytes")
    return [run for run in group(runs, "seconds") if abs(run["seconds"] / plain["seconds"] - 1) > UNEVEN]


def had(run: Run, runs: Sequence[Run]) -> str:
    """The seconds of a run that is not judged at equal seconds."""
    (plain,) = (run for run in runs if run["tokens"]["kind"] == "bytes")
    return f"{name_of(run)} learnt for {run['seconds']:,.3g} seconds where bytes had {plain['seconds']:,.3g}"


def _judged(runs: Sequence[Run], budget: str) -> list[Run]:
    """What may be set against bytes: at equal seconds only what had as many."""
    far = uneven(runs) if budget == "seconds" else []
    return [run for run in group(runs, budget) if run["tokens"]["kind"] != "bytes" and run not in far]


def first_letter(run: Run) -> tuple[float, float] | None:
    """What first letters take of the bits of all letters, and what share of the letters they are, if there are any."""
    letters = [place for place in run["places"] if place["place"] > 0]
    if not letters:
        return None
    bits, count = (sum(place[key] for place in letters) for key in ("bits", "count"))
    first = [place for place in letters if place["place"] == 1]
    return sum(place["bits"] for place in first) / bits, sum(place["count"] for place in first) / count


def _answer(runs: Sequence[Run], held_out: Mapping[str, Any]) -> str:
    """Which part is accounting, and which is real."""
    sure = [
        f"{_listed(names)} {better} at equal {budget}"
        for budget in ("bytes", "seconds")
        for better, names in _beyond_error(_judged(runs, budget)).items()
        if names
    ]
    real = [f"what was learnt (against bytes: {'; '.join(sure)})"] if sure else []
    alike = group(runs, "bytes")
    begin = [name_of(run) for run in alike if _leaning(run) > 0]
    real += [f"that bits sit at the beginning of words ({', '.join(begin)})"] if begin else []
    helped, hurt = _by_feedback(alike)
    real += [f"that guessing is easier with feedback ({', '.join(helped)})"] if helped else []
    real += [f"that feedback costs more guesses than it saves ({', '.join(hurt)})"] if hurt else []
    found = f"Real is {_listed(real)}." if real else "Nothing else of it could be measured here."
    if far := uneven(runs):
        found += f" Not judged at equal seconds: {'; '.join(had(run, runs) for run in far)}."
    wrong = _miscounted(runs, held_out)
    if wrong:
        return f"The bits do not add up here, so nothing can be said of accounting: {'; '.join(wrong)}. {found}"
    return (
        "Of the paper's worry, the part about comparing figures is accounting: none of it is left once all bits are "
        f"counted over equal bytes. So they are here: {len(runs)} runs, each charged for the same "
        f"{held_out['bytes']:,} bytes, the bits of its tokens adding up to theirs. {found}"
    )


def _miscounted(runs: Sequence[Run], held_out: Mapping[str, Any]) -> list[str]:
    """What would make comparing total bits wrong: other bytes, bits that are missing, a chain rule that fails."""
    wrong = []
    for run in runs:
        if run["restored"] != held_out["sha256"]:
            wrong.append(f"the tokens of {run['run']} spell other bytes")
        told, bits = run["bits_per_token"] * run["tokens_scored"], run["bits"]
        if abs(told - bits) > ADDS_UP * bits or abs(run["bits_per_byte"] * held_out["bytes"] - bits) > ADDS_UP * bits:
            wrong.append(f"of {run['run']} the tokens have {told:,.1f} bits and the bytes {bits:,.1f}")
        over = run["overstated"]
        if run["tokens"]["kind"] == "bytes" and over["words"] and over["deviation"] > CHAIN_RULE:
            wrong.append(f"bytes miss the chain rule by {over['deviation']:.0e} bits")
    return wrong


def _same(left_out: Mapping[str, str]) -> str:
    """What was not trained, and why."""
    return " ".join(f"Left out are {name}: {why}." for name, why in left_out.items())


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _leaning(run: Run) -> int:
    """Whether first letters take more of the bits than they are of the letters (1), or less (-1), beyond the error."""
    found = run["beginning"]
    if not is_sure(found["excess"], found["error"], found["blocks"]):
        return 0
    return 1 if found["excess"] > 0 else -1


def _by_feedback(alike: Sequence[Run]) -> tuple[list[str], list[str]]:
    """Under which kinds a word takes fewer wrong guesses with feedback, and under which more, beyond the error."""
    found = [(name_of(run), run["guesses"]["saved"], run["guesses"]["words"]) for run in alike]
    sure = [(name, own["guesses"]) for name, own, words in found if is_sure(own["guesses"], own["error"], words)]
    return [name for name, guesses in sure if guesses > 0], [name for name, guesses in sure if guesses < 0]


def _accounting(runs: Sequence[Run], held_out: Mapping[str, Any]) -> str:
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
        f"{high['perplexity_per_token']:,.1f} ({name_of(high)}), a factor of {factor:,.0f}; over the same "
        f"{held_out['bytes']:,} bytes all lie between {by_byte[0]['bits_per_byte']:.3f} and "
        f"{by_byte[-1]['bits_per_byte']:.3f} bits per byte. {order}."
        f"{'' if _miscounted(runs, held_out) else _chain_rule(runs)}"
    )


def _chain_rule(runs: Sequence[Run]) -> str:
    """By how much bytes missed the chain rule, at most, if a word was there to check it."""
    (plain,) = (run["overstated"] for run in runs if run["tokens"]["kind"] == "bytes")
    checked = f"; of bytes this was checked, to {plain['deviation']:.0e} bits" if plain["words"] else ""
    return f" The bits of a word's pieces add up to the bits of the word, whatever is told in between{checked}."


def _learnt(runs: Sequence[Run], budget: str) -> str:
    """Differences in total bits: what a model learnt, not how it was counted."""
    said = [f"{name_of(run)} {_difference(run)}" for run in _judged(runs, budget)]
    if budget == "seconds":
        said += [f"{name_of(run)} is left out, its seconds were not equal" for run in uneven(runs)]
    return f"Learning, at equal {budget}, against bytes: {'; '.join(said)}." if said else ""


def _difference(run: Run) -> str:
    apart, error = run["against_bytes"]["difference"], run["against_bytes"]["error"]
    if not _differs(run):
        return f"no different beyond its error ({apart:+.3f} {plus_minus(error)} bits per byte)"
    return f"{'better' if apart < 0 else 'worse'} by {abs(apart):.3f} {plus_minus(error)} bits per byte"


def _differs(run: Run) -> bool:
    """Whether it differs from bytes by more than its error over blocks of text."""
    found = run["against_bytes"]
    return is_sure(found["difference"], found["error"], found["blocks"])


def _beyond_error(others: Sequence[Run]) -> dict[str, list[str]]:
    """Which kinds differ from bytes by more than their error, by direction."""
    sure = [(name_of(run), run["against_bytes"]["difference"]) for run in others if _differs(run)]
    return {
        "better": [name for name, difference in sure if difference < 0],
        "worse": [name for name, difference in sure if difference > 0],
    }


def _canonical(runs: Sequence[Run]) -> str:
    """What other segmentations would give back: never less than nothing, so only its size is a question."""
    pieces = [
        run for run in group(runs, "bytes") if run["tokens"]["kind"] == "wordpieces" and run["overstated"]["words"]
    ]
    said: dict[str, list[str]] = {}
    for run in pieces:
        over = run["overstated"]
        error = plus_minus(over["error"], ".2%", over["canonical"])
        said.setdefault(_size(over), []).append(f"{over['share']:.2%} {error} ({name_of(run)})")
    sentences = []
    if "much" in said:
        sentences.append(
            "Counting only the canonical segmentation charges wordpieces too much, not too little: "
            f"{', '.join(said['much'])} of the bits of a word are other ways to write it, so this part of the worry "
            "points the other way."
        )
    if "little" in said:
        sentences.append(
            "Counting only the canonical segmentation overstates a word's bits by next to nothing: "
            f"{', '.join(said['little'])}."
        )
    if "unknown" in said:
        sentences.append(
            "By how much counting only the canonical segmentation overstates a word's bits (it cannot be less than 0) "
            f"is not measurable on so few words: {', '.join(said['unknown'])}."
        )
    return " ".join(sentences)


def _size(over: Mapping[str, Any]) -> str:
    """Whether what is overstated is more than nothing beyond its error, or next to nothing with all of its error."""
    if is_sure(over["overstated"], over["error"], over["words"]) and over["share"] >= NOTHING:
        return "much"
    most = over["overstated"] + margin(over["error"], over["words"])
    return "little" if most < NOTHING * over["canonical"] else "unknown"


def _places(runs: Sequence[Run]) -> str:
    """Do the first characters carry most, and under which kinds?"""
    found = [(name_of(run), run, shares) for run in group(runs, "bytes") if (shares := first_letter(run))]
    if not found:
        return ""
    taken = ", ".join(
        f"{share:.1%} {plus_minus(run['beginning']['error'], '.1%')} ({name})" for name, run, (share, _) in found
    )
    leaning = {sign: [name for name, run, _ in found if _leaning(run) == sign] for sign in (1, -1, 0)}
    size = found[0][2][1]
    return f"{_beginning(leaning)}: first letters are {size:.1%} of all letters and take {taken} of their bits."


def _beginning(leaning: Mapping[int, Sequence[str]]) -> str:
    """Under which kinds bits sit at the beginning (1), under which they do not (-1), and where that is not sure (0)."""
    there, not_there, unknown = (leaning[sign] for sign in (1, -1, 0))
    if not (not_there or unknown):
        return "Bits do sit at the beginning of words, however the text is cut into tokens"
    if not (there or unknown):
        return "Bits do not sit at the beginning of words, however the text is cut into tokens"
    if not (there or not_there):
        return "Whether bits sit at the beginning of words is not measurable here"
    said = [f"they do under {_listed(there)}"] if there else []
    said += [f"they do not under {_listed(not_there)}"] if not_there else []
    said += [f"it is not measurable under {_listed(unknown)}"] if unknown else []
    return f"Whether bits sit at the beginning of words differs: {_listed(said)}"


def _feedback(runs: Sequence[Run], most: int) -> str:
    """The password: guesses with an answer after each piece against guesses of whole words."""
    alike = [run for run in group(runs, "bytes") if run["guesses"]["words"]]
    if not alike:
        return ""
    counts = "; ".join(
        f"{name_of(run)} {run['guesses']['without']['wrong']:.1f} and {run['guesses']['with']['wrong']:.1f}, saved "
        f"{run['guesses']['saved']['guesses']:.2f} {plus_minus(run['guesses']['saved']['error'], '.2f')}"
        for run in alike
    )
    first = sorted((run["guesses"]["without"]["first"], name_of(run)) for run in alike)
    (low, worst), (high, best) = first[0], first[-1]
    words = min(run["guesses"]["words"] for run in alike)
    close = (
        f"about equally often under all kinds ({low:.0%} to {high:.0%} of {words})"
        if not is_sure(high - low, _error_of_shares(low, high, words), words)
        else f"in {low:.0%} ({worst}) to {high:.0%} ({best}) of {words} cases"
    )
    return (
        f"The password: an answer after every piece {_sense(alike)}. Wrong guesses for a whole word, and by pieces "
        f"(given up after {most}): {counts}. But bits multiply the probabilities of pieces, as guessing the whole "
        f"does, and whole words are right at once {close}."
    )


def _error_of_shares(one: float, other: float, words: int) -> float:
    """Of the difference of two shares of some words, with a success and a failure added to each (Agresti and Caffo
    2000): none and all of three words would have no error else.
    """
    shares = [(share * words + 1) / (words + 2) for share in (one, other)]
    return float((sum(share * (1 - share) for share in shares) / (words + 2)) ** 0.5)


def _sense(alike: Sequence[Run]) -> str:
    """Whether feedback helps, under which kinds."""
    helped, hurt = _by_feedback(alike)
    others = [name_of(run) for run in alike if name_of(run) not in (*helped, *hurt)]
    said = [f"helps under {_listed(helped)}"] if helped else []
    said += [f"costs more guesses than it saves under {_listed(hurt)}"] if hurt else []
    if not said:
        return "makes no measurable difference under any kind"
    return _listed([*said, *([f"makes no measurable difference under {_listed(others)}"] if others else [])])


def _spellings(runs: Sequence[Run]) -> str:
    """specialized or specialised."""
    alike = group(runs, "bytes")
    count = len(alike[0]["spellings"]["cases"])
    if not count:
        return "The held-out text has no word of which the corpus knows an -ize and an -ise."
    said = ", ".join(
        f"{run['spellings']['choice']:.2f} {plus_minus(run['spellings']['choice_error'], '.2f')} ({name_of(run)})"
        for run in alike
    )
    plain = [case["choice"] for case in alike[0]["spellings"]["cases"]]
    dearer = []
    for run in alike[1:]:
        apart = np.subtract([case["choice"] for case in run["spellings"]["cases"]], plain)
        if is_sure(float(apart.mean()), standard_error(apart), count):
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
    saved = sorted(((*_saving(run), name_of(run)) for run in alike), key=lambda one: -one[0])
    count = min(
        run["names"][which]["names"] for run in alike for which in ("first", "later")
    )  # of two means, the fewer
    sure = [name for share, error, name in saved if share > 0 and is_sure(share, error, count)]
    if not sure:
        return f"A name costs so many bits at first and when it was read before: {said}; none saves beyond the error."
    gains = f"it is cheaper, beyond the error, under {_listed(sure)}"
    if len(saved) > 1:
        (best, error, name), (next_best, next_error, _) = saved[:2]
        both = None if error is None or next_error is None else (error**2 + next_error**2) ** 0.5
        gains += (
            f", and the saving is largest for {name}"
            if is_sure(best - next_best, both, count)
            else "; in how much they save, the kinds do not differ beyond the error"
        )
    return f"A name costs so many bits at first and when it was read before: {said}; {gains}."


def _saving(run: Run) -> tuple[float, float | None]:
    """The share of a name's bits that is saved when it was read before, 1 - later / first, and its standard error."""
    first, later = run["names"]["first"], run["names"]["later"]
    ratio = later["bits"] / first["bits"]
    if first["error"] is None or later["error"] is None:
        return 1 - ratio, None
    return 1 - ratio, float(
        ((later["error"] / first["bits"]) ** 2 + (ratio * first["error"] / first["bits"]) ** 2) ** 0.5
    )

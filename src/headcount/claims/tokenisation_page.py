"""The tokenisation claim as parts of a page: every number of the record, in tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headcount.claims.evidence import plus_minus
from headcount.claims.segmentations import MOST_PATHS
from headcount.claims.tokenisation_verdict import Run, first_letter, group, had, name_of, uneven
from headcount.counted import counted
from headcount.measure.figure import Figure
from headcount.show.page import Section, escape, table
from headcount.show.plots import Line, bar_chart, line_chart

BUDGETS = ("bytes", "seconds")


def sections(record: Mapping[str, Any]) -> list[Section]:
    """From the total to the cases."""
    runs: Sequence[Run] = record["runs"]
    return [
        _totals(runs, record["held_out"], record["seed"]),
        _trained(runs, record["left_out"]),
        _places(runs),
        _overstated(runs),
        _guesses(runs, record["most_guesses"]),
        _spellings(runs, record["pairs"]),
        _names(runs),
        _figures(record),
    ]


def _each(runs: Sequence[Run], make: Any) -> str:
    """Something of each budget under its own heading."""
    shown = [(budget, group(runs, budget)) for budget in BUDGETS]
    far = "; ".join(had(run, runs) for run in uneven(runs))
    notes = {"seconds": f"<p>Not equal, and not judged: {escape(far)}.</p>" if far else ""}
    return "".join(
        f"<h3>At equal {budget}</h3>{notes.get(budget, '')}{make(alike)}" for budget, alike in shown if len(alike) > 1
    )


def _totals(runs: Sequence[Run], held_out: Mapping[str, Any], seed: int) -> Section:
    def chart(alike: Sequence[Run]) -> str:
        bars = [
            (
                _name(run),
                run["bits_per_byte"],
                f"{run['bits_per_byte']:.3f} bits per byte"
                + ("" if run["tokens"]["kind"] == "bytes" else f", {run['against_bytes']['difference']:+.3f}"),
            )
            for run in alike
        ]
        rows = [
            (
                _name(run),
                f"{run['bits']:,.0f}",
                f"{run['bits_per_byte']:.4f}",
                _apart(run),
                f"{run['tokens_scored']:,}",
                f"{run['perplexity_per_token']:,.2f}",
                f"{run['bits_per_token']:.2f}",
                f"{run['spread']:.2f}",
            )
            for run in alike
        ]
        columns = (
            "tokens",
            "bits in all",
            "per byte",
            "against bytes",
            "tokens read",
            "perplexity",
            "per token",
            "spread",
        )
        return bar_chart(bars, "bits per byte") + table(rows, columns, range(1, 8))

    about = (
        f"Every kind is charged all of its bits over the same {held_out['bytes']:,} held-out bytes (sha256 "
        f"{held_out['sha256'][:12]}). Perplexity per token, which the paper worries about, divides by something else "
        "for each. Spread: the standard deviation of a token's bits over their mean. One seed "
        f"({seed}): ± is of the text, over blocks of it, not of training."
    )
    return Section("Bits over equal bytes", about, _each(runs, chart))


def _name(run: Run) -> str:
    """In one line of a table."""
    return name_of(run).replace(" ", "\N{NO-BREAK SPACE}")


def _short(run: Run) -> str:
    """Where every column counts."""
    return _name(run).replace("wordpieces", "pieces")


def _apart(run: Run) -> str:
    if run["tokens"]["kind"] == "bytes":
        return ""
    return f"{run['against_bytes']['difference']:+.4f} {plus_minus(run['against_bytes']['error'], '.4f')}"


def _trained(runs: Sequence[Run], left_out: Mapping[str, str]) -> Section:
    rows = [
        (
            run["run"],
            f"{run['parameters']['body']:,}",
            f"{run['parameters']['vocabulary']:,}",
            f"{run['tokens']['vocabulary']:,}",
            f"{run['tokens']['bytes_per_token']:.2f}",
            f"{run['window']['bytes']:,.0f}",
            f"{run['steps']:,}",
            f"{run['bytes_read'] / 1e6:,.2f} MB",
            f"{run['seconds']:,.0f}",
        )
        for run in runs
    ]
    columns = (
        "run",
        "parameters of the body",
        "of the vocabulary",
        "symbols",
        "bytes a token",
        "window in bytes",
        "steps",
        "read",
        "seconds",
    )
    missing = "".join(f"<p>{escape(name)} are left out: {escape(why)}.</p>" for name, why in left_out.items())
    about = (
        "One body under all kinds. Window, segment and what a step reads are given in bytes, and are the same for all. "
        "Wordpieces and words were learnt from the whole training split, however much of it was then read."
    )
    return Section("What was trained", about, table(rows, columns, range(1, 9)) + missing)


def _places(runs: Sequence[Run]) -> Section:
    def chart(alike: Sequence[Run]) -> str:
        lines = [
            Line(name_of(run), [(p["place"], p["bits"] / p["count"]) for p in run["places"]], i, marked=True)
            for i, run in enumerate(alike)
        ]
        rows = [
            (
                _name(run),
                *(f"{share:.1%}" for share in first_letter(run) or ()),
                f"{_mean(run, 1, 1):.2f}",
                f"{_mean(run, 2, 99):.2f}",
            )
            for run in alike
        ]
        columns = ("tokens", "bits on first letters", "of all letters", "bits of a first letter", "of a later one")
        return line_chart(lines, "place in the word", "bits") + table(rows, columns, range(1, 5))

    about = (
        "Mean bits of the byte before a word (0), of its first letter (1), its second and so on; the last place stands "
        "for all after it. A token's bits are divided among its bytes by the mass of all tokens that begin alike."
    )
    if first_letter(runs[0]) is None:
        return Section("Bits by place in a word", about, "<p>The held-out text has no letters.</p>")
    return Section("Bits by place in a word", about, _each(runs, chart))


def _mean(run: Run, first: int, last: int) -> float:
    """Bits of a letter, over some places of a word."""
    found = [place for place in run["places"] if first <= place["place"] <= last]
    return float(sum(p["bits"] for p in found) / sum(p["count"] for p in found)) if found else 0.0


def _overstated(runs: Sequence[Run]) -> Section:
    rows = [
        (
            _short(run),
            f"{_round(over['overstated'] / over['words'], 4):.4f} {plus_minus(over['error'], '.4f', over['words'])}",
            f"{_round(over['share'], 5):.3%}",
            run["budget"],
            f"{over['canonical'] / over['words']:.3f}",
            f"{over['words']:,}",
            f"{over['sampled']:,}",
            f"{over['drawn_error'] / over['words']:.4f}" if over["sampled"] else "",
        )
        for run in runs
        if (over := run["overstated"]) and over["words"]
    ]
    columns = (
        "tokens",
        "overstated",
        "share",
        "at equal",
        "canonical bits",
        "words",
        "of these sampled",
        "of ± by drawing",
    )
    about = (
        "What the canonical segmentation of a word and of what ends it is charged, less what all segmentations "
        "together are: summed exactly for words of up to 12 letters and all others of which every path can be read "
        f"with up to {MOST_PATHS:,} tokens, else estimated by drawing. Bits for a word, ± for the words that were "
        "taken. Bytes have one segmentation, so theirs is the chain rule: checked."
    )
    numbers = (1, 2, 4, 5, 6, 7)
    return Section("What a canonical segmentation overstates", about, table(rows, columns, numbers) + _largest(runs))


def _largest(runs: Sequence[Run]) -> str:
    """The words of which other segmentations have most."""
    rows = [
        (_short(run), word["word"], f"{word['overstated']:.2f}", f"{word['bits']:.2f}", " ".join(word["pieces"]))
        for run in group(runs, "bytes")
        if run["tokens"]["kind"] == "wordpieces" and run["overstated"]
        for word in run["overstated"]["largest"]
    ]
    columns = ("tokens", "word", "overstated", "of bits", "canonical pieces")
    return f"<h3>Where it is most, at equal bytes</h3>{table(rows, columns, (2, 3))}" if rows else ""


def _round(value: float, digits: int) -> float:
    """Without a sign before a zero."""
    return round(value, digits) + 0.0


def _guesses(runs: Sequence[Run], most: int) -> Section:
    def shown(alike: Sequence[Run]) -> str:
        bars = [
            (f"{name_of(run)}, {how}", run["guesses"][key]["wrong"], f"{run['guesses'][key]['wrong']:.1f} wrong")
            for key, how in (("without", "whole"), ("with", "by piece"))
            for run in alike
        ]
        rows = [
            (
                _short(run),
                f"{found['saved']['guesses']:.2f} {plus_minus(found['saved']['error'], '.2f')}",
                f"{found['without']['wrong']:.1f}",
                f"{found['with']['wrong']:.1f}",
                f"{found['without']['first']:.0%}",
                f"{found['with']['first_piece']:.0%}",
                f"{found['pieces']:.1f}",
                f"{found['words']}",
                f"{found['with']['multiplied']:,.1f}",
            )
            for run in alike
            if (found := run["guesses"])["words"]
        ]
        columns = (
            "tokens",
            "saved",
            "wrong, whole",
            "by piece",
            "at once, whole",
            "a piece",
            "pieces",
            "words",
            "Π ranks",
        )
        return bar_chart(bars, "wrong guesses") + table(rows, columns, range(1, 9))

    about = (
        "Whole: words in the order of their probability by a beam, nothing is answered but the whole. By piece: the "
        "true piece is told, so guesses add up. Only wrong guesses count, so that a word right at once is 0 both ways; "
        f"both are given up after {most} and count as {most}. Saved: whole less by piece, ± over the words. At once: "
        "the first guess is right, of a whole word and of a single piece. Π ranks (geometric mean) is "
        "what the pieces come to if only the whole combination were answered."
    )
    return Section("The password: with feedback and without", about, _each(runs, shown))


def _spellings(runs: Sequence[Run], known: Mapping[str, Sequence[int]]) -> Section:
    cases = runs[0]["spellings"]["cases"]
    listed = sorted(known.items(), key=lambda pair: -min(pair[1]))[:12]
    words = "; ".join(f"{word} {counts[0]:,} with z, {counts[1]:,} with s" for word, counts in listed)
    about = (
        f"Words of which the corpus has both spellings: {len(known):,}{f' ({escape(words)})' if words else ''}. At "
        f"{counted(len(cases), 'place')} of the held-out text both were scored. Stem: which word; choice: which of the "
        "two; ± over the places."
    )
    if not cases:
        return Section("-ize or -ise", about, "<p>There is no such place.</p>")
    rows = [
        (
            run["run"],
            f"{found['stem']:.2f} {plus_minus(found['stem_error'], '.2f')}",
            f"{found['choice']:.3f} {plus_minus(found['choice_error'])}",
        )
        for run in runs
        if (found := run["spellings"])
    ]
    body = table(rows, ("run", "bits of the stem", "bits of the choice"), (1, 2))
    alike = group(runs, "bytes")
    each = [
        (case["written"], *(f"{run['spellings']['cases'][i]['choice']:.2f}" for run in alike))
        for i, case in enumerate(cases)
    ]
    columns = ("in the text", *(_name(run) for run in alike))
    return Section(
        "-ize or -ise",
        about,
        f"{body}<h3>The choice, case by case, at equal bytes</h3>{table(each, columns, range(1, 9))}",
    )


def _names(runs: Sequence[Run]) -> Section:
    rows = [
        (
            run["run"],
            *(_bits(run["names"][which]) for which in ("first", "later")),
            *(_share(run["names"][which]["opening"]) for which in ("first", "later")),
        )
        for run in runs
    ]
    first, later = (runs[0]["names"][which]["names"] for which in ("first", "later"))
    about = (
        "Words with a capital that are never written small and come back: bits of the whole name with its space and "
        f"what ends it, at its first place ({first:,}) and at later ones ({later:,}), and the share that its space and "
        "first letter take of them."
    )
    columns = ("run", "first", "later", "opening at first", "opening later")
    return Section("Names that come back", about, table(rows, columns, range(1, 5)))


def _figures(record: Mapping[str, Any]) -> Section:
    """Every run's figure in its own words, and what asked for it."""
    lines = "".join(
        f"<p class=protocol><b>{escape(run['run'])}</b> {escape(str(Figure(**run['figure'])))} · "
        f"{escape(run['figure']['date'])}</p>"
        for run in record["runs"]
    )
    about = (
        "One figure for each run, over exactly the bytes that are counted above; claim.json and the runs' "
        "figures.jsonl hold them whole."
    )
    asked = f"<pre class=wrap>{escape(record['command'])}</pre>"
    asked += f"<p>Seed {record['seed']}, headcount {escape(record['version'])}.</p>"
    return Section("The figures", about, lines + asked)


def _bits(found: Mapping[str, Any]) -> str:
    if found["bits"] is None:
        return ""
    return f"{found['bits']:.2f}" + (f" ± {found['error']:.2f}" if found["error"] is not None else "")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"

"""headcount convert."""

from __future__ import annotations

import json as jsons
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.cli.options import Json

if TYPE_CHECKING:
    from headcount.measure.convert import Converted

Count = Annotated[int | None, Parameter(help="a count, if there is no text to count")]


def convert(
    value: Annotated[str, Parameter(help="the figure; or a run, whose figure has the counts of its text")],
    unit: Annotated[
        str | None, Parameter(help="bits-per-byte, bits-per-character, perplexity-per-word[-with-eos], …-token")
    ] = None,
    /,
    *,
    text: Annotated[str | None, Parameter(help="the text that the figure is of: its counts are taken")] = None,
    corpus: Annotated[str | None, Parameter(help="or a corpus by name")] = None,
    split: Annotated[str | None, Parameter(help="--corpus: train, valid or test; test. Of a run: which figure")] = None,
    bytes: Count = None,
    characters: Count = None,
    words: Count = None,
    lines: Count = None,
    newlines: Count = None,
    unknown: Count = None,
    tokens: Annotated[int | None, Parameter(help="how many tokens a figure per token was divided by")] = None,
    json: Json = False,
) -> None:
    """One figure in every unit, by the counts of the text it is of, and how much the usual slips would move it.

    ppl = 2^(bpc · Nc / Nw): exact if all the bits were spent on the same bytes. perplexity-per-word counts words only,
    -with-eos an <eos> for every line too, as published figures on WikiText do.
    """
    from headcount.errors import RequestError
    from headcount.measure.convert import convert as converted
    from headcount.use.convert import counts_of

    given = {
        "bytes": bytes,
        "characters": characters,
        "words": words,
        "lines": lines,
        "newlines": newlines,
        "unknown": unknown,
    }
    if unit is None:
        if text or corpus or any(number is not None for number in (*given.values(), tokens)):
            raise RequestError("a unit is missing: VALUE UNIT; a run's own figure has its own counts")
        _put_figure(value, split, json)
        return
    try:
        number = float(value)
    except ValueError:
        raise RequestError(f"{value}: must be a number before {unit}") from None
    result = converted(number, unit, counts_of(text, corpus, split, given, tokens))
    print(jsons.dumps(_plain(result)) if json else _table(result))


def _put_figure(path: str, split: str | None, json: bool) -> None:
    """A run's figure, by the counts of the text that it was measured on."""
    from headcount.use.convert import convert_figure, figure_of

    figure = figure_of(path, split)
    result, minded = convert_figure(figure)
    if json:
        print(jsons.dumps({**_plain(result), "figure": figure, "mind": minded}))
        return
    corpus = figure["corpus"]
    of = f"{corpus['name']} {corpus['split']}, {figure['bytes']:,} bytes, sha256 {corpus['sha256'][:12]}"
    print(f"{figure['value']:.4f} {figure['unit']} · {figure['protocol']['name']} · {of}\n")
    print("\n".join([_table(result, lossless=figure["tokens"]["exact"]), *minded]))


def _table(result: Converted, *, lossless: bool = True) -> str:
    from headcount.cli.pages import aligned
    from headcount.counted import counted
    from headcount.measure.convert import UNITS

    rows = [["unit", "value", "divided by"]]
    for unit, value in result.values.items():
        divides_by = UNITS[unit].divides_by
        number = getattr(result.counts, divides_by)
        what = f"{number:,} words and <eos>" if divides_by == "words_and_ends" else counted(number, divides_by[:-1])
        rows.append([unit if lossless else f"{unit}, not lossless", _shown(value), what])
    said = [aligned(rows, left=(0, 2)), f"\n{result.bits:,.1f} bits in all, on the same bytes in every unit."]
    if result.conditions:
        broken = [["if …", "unit", "instead of", "it reads", "difference", ""]]
        for c in result.conditions:
            size = [_shown(c.value), _shown(c.broken), _shown(c.difference, "+"), f"{_shown(c.per_cent, '+', 2)} %"]
            broken.append([c.name, c.unit, *size])
        said.append("What is usually broken, and by how much:\n\n" + aligned(broken, left=(0, 1)))
    return "\n".join(said)


def _plain(result: Converted) -> dict[str, Any]:
    """As JSON, which has no infinity."""
    slips = [{**asdict(c), "difference": c.difference, "per_cent": c.per_cent} for c in result.conditions]
    values = {unit: value if math.isfinite(value) else None for unit, value in result.values.items()}
    return {**asdict(result), "values": values, "conditions": slips}


def _shown(value: float, sign: str = "", digits: int = 4) -> str:
    if math.isinf(value):
        return "beyond 1e308"
    return f"{value:{sign}.{digits}{'f' if abs(value) < 1e6 else 'e'}}"

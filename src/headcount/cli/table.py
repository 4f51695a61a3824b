"""headcount table."""

from __future__ import annotations

import json as jsons
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.cli.options import Json

if TYPE_CHECKING:
    from headcount.use.published import Counted, Entry, Row, Standing, Table

HEADER = ("params", "counted", "heads", "counted", "valid", "test")
LEGEND = (
    "Params and heads stand as printed and as counted: by our model of the paper's recipe, in training/in use, or "
    "with ~ by formula from the published sizes."
)
NARROWEST_NAME = 22


def table(
    corpus: Annotated[str, Parameter(help="enwik8, text8 or wikitext-103")],
    /,
    *,
    runs: Annotated[
        list[str] | None, Parameter(consume_multiple=True, help="runs, or folders of runs; runs/ by default")
    ] = None,
    json: Json = False,
) -> None:
    """Every row that three papers print on a corpus, and beside it the run of ours that stands for it.

    Rows are grouped by the way their bits were counted; nothing is ranked across ways.
    """
    from headcount.use.published import table as read_table

    found = read_table(corpus, runs)
    for sentence in found.left_out:
        print(sentence, file=sys.stderr)
    if json:
        print(jsons.dumps(_plain(found)))
        return
    print(_shown(found, shutil.get_terminal_size(fallback=(120, 24)).columns))


def _shown(found: Table, width: int) -> str:
    said = [
        _wrapped(
            f"{found.corpus}, {found.unit}. Rows stand as the papers print them, in groups by the way their bits were "
            "counted. Figures of different groups cannot be compared; within a group mind what the protocols say. "
            f"Nothing is ranked. {LEGEND}",
            width,
        )
    ]
    cells = {id(entry): _cells(entry) for group in found.groups for entry in group.entries}
    widths = [max(len(row[i]) for row in [HEADER, *cells.values()]) for i in range(len(HEADER))]
    name_width = max(NARROWEST_NAME, width - sum(widths) - 2 * len(widths))
    for group in found.groups:
        said += ["", _wrapped(f"== {group.about}. Mind: {group.differs}.", width)]
        source = ""
        for entry in group.entries:
            if entry.row.source != source:
                source = entry.row.source
                said += ["", *_line(source, HEADER, name_width, widths)]
                said += [_wrapped(f"({entry.row.caveat})", width)] if entry.row.caveat else []
            said += _line("  " + entry.row.name, cells[id(entry)], name_width, widths)
            said.append(_wrapped(_about(entry), width, "    "))
    return "\n".join(said)


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


def _line(name: str, cells: Sequence[str], name_width: int, widths: Sequence[int]) -> list[str]:
    """A name on one line or several, with the numbers on its last."""
    lines = textwrap.wrap(name, name_width, subsequent_indent="    ")
    numbers = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return [*lines[:-1], f"{lines[-1]:<{name_width}}  {numbers}".rstrip()]


def _cells(entry: Entry) -> list[str]:
    row, counted = entry.row, entry.counted
    heads = [row.heads, None if counted is None else counted.heads]
    return [
        row.parameters or "–",
        _parameters(row, counted),
        *("–" if number is None else str(number) for number in heads),
        row.valid or "–",
        row.test,
    ]


def _parameters(row: Row, counted: Counted | None) -> str:
    if counted is None:
        return f"~{row.formula}" if row.formula else "–"
    trained, used = counted.in_training / 1e6, counted.in_use / 1e6
    return f"{trained:.1f}M" if trained == used else f"{trained:.1f}M/{used:.1f}M"


def _about(entry: Entry) -> str:
    ours = "; ".join(_run(standing) for standing in entry.runs) or entry.ours
    return " · ".join([f"Headcount: {ours}", entry.row.protocol, *entry.row.notes])


def _run(standing: Standing) -> str:
    figure = standing.figure
    if figure is None:
        return f"{standing.run}, no figure yet"
    step, steps = figure["model"]["step"], standing.steps
    trained = f"step {step:,}" + (f" of {steps:,}" if steps else "") if step is not None else "unknown step"
    measured = f"{figure['protocol']['name']}, {figure['corpus']['split']}, {figure['bytes']:,} bytes"
    tokens = f"tokens {figure['tokens']['kind']}"
    value = f"{figure['value']:.4f} {figure['unit']}"
    if standing.perplexity is not None:
        value = f"perplexity {standing.perplexity:,.2f} per word, {value}"
    return f"{standing.run} {value} ({measured}, {tokens}, {trained})"


def _plain(found: Table) -> dict[str, Any]:
    """As JSON: figures are numbers, and every row says what there is of ours."""
    plain = asdict(found)
    for group, shown in zip(found.groups, plain["groups"], strict=True):
        for entry, row in zip(group.entries, shown["entries"], strict=True):
            row["row"]["test"] = float(entry.row.test)
            row["row"]["valid"] = None if entry.row.valid is None else float(entry.row.valid)
            row["ours"] = "; ".join(standing.run for standing in entry.runs) or entry.ours
    return plain

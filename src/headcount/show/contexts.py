"""Curves by context, window or distance: a table for the terminal, and a page with the plot."""

from __future__ import annotations

from headcount.show.page import Section, escape, page, table
from headcount.show.plots import Line, Mark, line_chart
from headcount.use.context import Curve, Curves, Lengths


def columns(curves: Curves) -> list[str]:
    """What stands above the table."""
    return [curves.along, *(curve.run for curve in curves.curves)]


def rows(curves: Curves) -> list[list[str]]:
    """A row for every place, a column for every run."""
    return [
        [f"{place:,}", *(_cell(curve, number) for curve in curves.curves)] for number, place in enumerate(curves.places)
    ]


def marks(curves: Curves) -> list[str]:
    """A sentence for every run that has a mark, and whether the curve goes that far."""
    beyond = " (outside this curve)"
    return [
        f"{curve.run} {curves.mark_means}: {curve.mark:,}{beyond if curve.mark > max(curves.places) else ''}"
        for curve in curves.curves
        if curve.mark is not None
    ]


def length_rows(found: Lengths) -> list[list[str]]:
    """Effective lengths, a column for every share of the positions, their names first; one that was cut off is open."""
    return [
        ["run", *(f"r = {share:g}" for share in found.by_share)],
        *(
            [run, *(f"{'≥ ' * one[number].open}{one[number].context:,}" for one in found.by_share.values())]
            for number, run in enumerate(found.runs)
        ),
    ]


def curves_page(curves: Curves) -> str:
    """One plot of all runs, and its numbers."""
    return page(f"Headcount: {curves.unit} by {curves.along}", sections(curves))


def sections(curves: Curves) -> list[Section]:
    """The plot, with what its marks mean, and the numbers."""
    lines = [
        Line(curve.run, list(zip(curves.places, curve.values, strict=True)), colour, marked=True)
        for colour, curve in enumerate(curves.curves)
    ]
    drawn = [
        Mark(f"{curve.run} {curves.mark_means}: {curve.mark:,}", curve.mark, colour)
        for colour, curve in enumerate(curves.curves)
        if curve.mark is not None
    ]
    plot = line_chart(lines, f"{curves.along} in bytes", curves.unit, doubling=True, marks=drawn)
    noted = "".join(f"<p>{escape(sentence)}.</p>" for sentence in marks(curves))
    numbers = table(rows(curves), columns(curves), range(len(curves.curves) + 1))
    return [
        Section(f"By {curves.along}", f"{escape(curves.about)}.", plot + noted),
        Section(f"The numbers by {curves.along}", _errors(curves), numbers),
    ]


def _cell(curve: Curve, number: int) -> str:
    error = f" ± {curve.errors[number]:.4f}" if curve.errors else ""
    return f"{curve.values[number]:z.4f}{error}"


def _errors(curves: Curves) -> str:
    has = any(curve.errors for curve in curves.curves)
    return "With standard errors; the runs share positions, so they differ from each other by less." if has else ""

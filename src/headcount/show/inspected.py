"""Pages that show the inside: where a head looks, and what units follow."""

from __future__ import annotations

import numpy as np

from headcount.show import heat
from headcount.show.page import Section, escape, page, table
from headcount.show.plots import bar_chart
from headcount.use.inspect import Head, Unit
from headcount.use.load import LanguageModel


def attention_page(lm: LanguageModel, text: bytes, heads: list[Head]) -> str:
    """The text over a ruler of the memory; click a byte and the places it reads light up."""
    sections = []
    for number, head in enumerate(heads):
        of = f" · head {number + 1}" if len(heads) > 1 else ""
        reach = len(head.distances)
        body = (
            f'<div class="looking" data-head="{number}">{heat.coloured(text, np.zeros(len(text)))}'
            f'<svg class="ruler" viewBox="0 0 1000 46" preserveAspectRatio="none" role="img" '
            f'aria-label="weights over the memory"></svg>'
            f'<div class="scale"><span>{reach - 1:,} bytes back</span><span>the row just written</span></div>'
            f'<div class="beside places" aria-live="polite"><p class="about">Click a byte, or go there with the arrow '
            f"keys: the places that were read to predict it light up above and stand on the ruler.</p></div></div>"
        )
        sections.append(Section(f"Where it looks{of}", f"{len(text):,} bytes, a memory of {reach:,} rows.", body))
        sections.append(Section(f"How far back{of}", "Share of the weight at each distance.", _distances(head)))
        sections.append(
            Section(
                f"What it copies{of}",
                "Spans that were predicted while the head read along the same bytes further back.",
                _copied(head, text),
            )
        )
    data = {
        "names": [heat.name_of(bytes([byte])) for byte in range(256)],
        "bytes": list(text),
        "heads": [
            {"reach": len(h.distances), "places": [[[d, round(1000 * w)] for d, w in row] for row in h.places]}
            for h in heads
        ],
    }
    return page(f"Attention of {lm.path}", sections, data)


def _distances(head: Head) -> str:
    bars, low = [], 0
    while low < len(head.distances):
        high = max(1, 2 * low)
        share = float(head.distances[low:high].sum())
        name = "its own row" if low == 0 else f"{low:,}" if high - low == 1 else f"{low:,} – {high - 1:,}"
        bars.append((name, share, f"{share:.1%}"))
        low = high
    return bar_chart(bars, "share of the weight by distance")


def _copied(head: Head, text: bytes) -> str:
    if not head.copied:
        return "<p>None: in this text it follows no earlier bytes for four in a row.</p>"
    rows = [
        (_shown(text[s.begin : s.begin + s.length]), f"{s.begin:,}", f"{s.begin - s.source:,}", f"{s.weight:.0%}")
        for s in head.copied
    ]
    return table(rows, ("span", "at byte", "from so far back", "mean weight"), (1, 2, 3))


def _shown(piece: bytes) -> str:
    return "".join(shown for _, _, shown in heat.units(piece)).replace("\n", "")


def neurons_page(lm: LanguageModel, text: bytes, units: list[Unit]) -> str:
    """The text tinted by one unit, and a choice of units by what they follow."""
    options = "".join(
        f'<option value="{i}">{escape(f"{u.feature}: unit {u.number} of {u.layer}, r = {u.correlation:+.2f}")}</option>'
        for i, u in enumerate(units)
    )
    first = units[0].values if units else np.zeros(len(text))
    body = (
        f'<p><select data-units aria-label="unit">{options}</select></p>'
        f"{heat.coloured(text, first, clamp=1.0, unit='', of=lambda values: values[-1])}"
        f"{heat.scale('-1', '+1', signed=True)}"
    )
    rows = [(u.feature, u.layer, str(u.number), f"{u.correlation:+.3f}") for u in units]
    ranking = table(rows, ("follows", "layer", "unit", "correlation"), (2, 3))
    about = f"{len(text):,} bytes; what a unit holds after each of them, tanh(c), cool below 0 and warm above."
    sections = [
        Section("One unit over the text", about, body),
        Section("Units by what they follow", "Pearson's r with simple features of the text, strongest first.", ranking),
    ]
    data = {"units": [[round(100 * float(v)) for v in u.values] for u in units]}
    return page(f"Neurons of {lm.path}", sections, data)

"""Pages that show the inside: where a head looks, and what units follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headcount.counted import counted
from headcount.measure.features import unchanging
from headcount.show import heat
from headcount.show.page import Section, escape, page, table
from headcount.show.plots import bar_chart
from headcount.use.inspect import Head, Unit
from headcount.use.load import LanguageModel


def attention_page(lm: LanguageModel, text: bytes, heads: list[Head]) -> str:
    """The text over a ruler of the memory; click a byte and the places that the chosen head reads light up."""
    several = len(heads) > 1
    reach = max(len(head.distances) for head in heads)
    count = f", {len(heads):,} heads" if several else ""
    sections = [
        Section(
            "Where it looks",
            f"{counted(len(text), 'byte')}{count}, a memory of {counted(reach, 'row')}.",
            _looking(text, heads),
        ),
        Section(
            "How far back",
            "Share of the weight at each distance. The further back, the more rows a bar holds: the upright line is "
            "what an even spread over the rows that were seen would give. A bar that goes beyond it is a preference.",
            _by_head(heads, _distances),
        ),
        Section(
            "What it copies",
            "Spans that were predicted while the head read along the same bytes further back.",
            _by_head(heads, lambda head: _copied(head, text)),
        ),
    ]
    data = {
        "names": [heat.name_of(bytes([byte])) for byte in range(256)],
        "bytes": list(text),
        "heads": [
            {
                "name": head.name if several else "it",
                "reach": len(head.distances),
                "places": [[number for d, w in row for number in (d, round(1000 * w))] for row in head.places],
            }
            for head in heads
        ],
    }
    return page(f"Attention of {lm.path}", sections, data)


def _choice(heads: list[Head]) -> str:
    """Which head is shown; every section has one, and the script keeps them equal. On paper it is a heading."""
    if len(heads) == 1:
        return ""
    options = "".join(f'<option value="{number}">{escape(head.name)}</option>' for number, head in enumerate(heads))
    return f'<p><select data-heads aria-label="head" autocomplete="off">{options}</select></p>'


def _looking(text: bytes, heads: list[Head]) -> str:
    """The text, the ruler, and room for words."""
    return (
        f'{_choice(heads)}<div class="looking">{heat.plain(text)}'
        f'<div class="beside"><svg class="ruler" viewBox="0 0 1000 46" preserveAspectRatio="none" role="img" '
        f'aria-label="weights over the memory"></svg>'
        f'<div class="scale"><span class="farthest">{counted(len(heads[0].distances) - 1, "byte")} back</span>'
        f"<span>the row just written</span></div>"
        f'<div class="places" aria-live="polite"><p class="about">Click a byte, or go there with the arrow keys: '
        f"the places that were read to predict it light up above and stand on the ruler.</p></div></div></div>"
    )


def _by_head(heads: list[Head], shown: Callable[[Head], str]) -> str:
    """The same thing of every head; the first head's is seen until another is chosen."""
    return _choice(heads) + "".join(
        f'<div data-of-head="{number}"{" hidden" if number else ""}>{shown(head)}</div>'
        for number, head in enumerate(heads)
    )


def _distances(head: Head) -> str:
    bars, even, low = [], [], 0
    while low < len(head.distances):
        high = max(1, 2 * low)
        share = float(head.distances[low:high].sum())
        name = "its own row" if low == 0 else f"{low:,}" if high - low == 1 else f"{low:,} – {high - 1:,}"
        even.append(float(head.even[low:high].sum()))
        bars.append((name, share, f"{share:.1%}, even spread {even[-1]:.1%}"))
        low = high
    return bar_chart(bars, "share of the weight by distance", even)


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
    if not units:
        nothing = (
            "<p>No unit follows anything here: the text is too short, or too even, for its features to change.</p>"
        )
        return page(f"Neurons of {lm.path}", [Section("One unit over the text", counted(len(text), "byte"), nothing)])
    options = "".join(
        f'<option value="{i}">{escape(f"{u.feature}: unit {u.number} of {u.layer}, r = {u.correlation:+.2f}")}</option>'
        for i, u in enumerate(units)
    )
    body = (
        f'<p><select data-units aria-label="unit">{options}</select></p>'
        f"{heat.coloured(text, units[0].values, clamp=1.0, unit='', of=lambda values: values[-1])}"
        f"{heat.scale('-1', '+1', signed=True)}"
    )
    rows = [(u.feature, u.layer, str(u.number), f"{u.correlation:+.3f}") for u in units]
    ranking = table(rows, ("follows", "where", "unit", "correlation"), (2, 3))
    ranked = "Pearson's r with simple features of the text, strongest first."
    if missing := unchanging(np.frombuffer(text, dtype=np.uint8)):
        ranked += f" Not in this text, or everywhere in it: {', '.join(missing)}."
    about = f"{counted(len(text), 'byte')}; what a unit holds after each of them, tanh(c), cool below 0 and warm above."
    sections = [
        Section("One unit over the text", about, body),
        Section("Units by what they follow", ranked, ranking),
    ]
    data = {"units": [[round(100 * float(v)) for v in u.values] for u in units]}
    return page(f"Neurons of {lm.path}", sections, data)

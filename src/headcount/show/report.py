"""The report of one run or several: the figure, the curves, what was written, where the bits go, what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount.counted import counted, in_seconds
from headcount.errors import RequestError
from headcount.learn import checkpoint
from headcount.learn.run import Run, require_different
from headcount.learn.trainer import PROMPT
from headcount.measure import kinds
from headcount.measure.figure import Figure, per_byte
from headcount.measure.figure import unit_of as bits_in
from headcount.show import heat
from headcount.show.architecture import drawing
from headcount.show.curves import curves, was_exact
from headcount.show.page import Section, escape, page, table
from headcount.show.plots import bar_chart
from headcount.text import corpora
from headcount.use.describe import describe, outline_of, unit_of
from headcount.use.load import LanguageModel, load

HEAT_BYTES, KIND_BYTES = 2_000, 65_536
SHOWN_PROMPT = 80


def report(paths: Sequence[str | Path]) -> str:
    """The whole page."""
    require_different(paths)
    runs = [Run.existing(path) for path in paths]
    names = [str(run.path) for run in runs]
    events = [run.events() for run in runs]
    data: dict[str, Any] = {"samples": [], "expected": []}
    sections = [_figures(runs), Section("Learning", "", curves(list(zip(names, events, strict=True))))]
    for run, happened in zip(runs, events, strict=True):
        own = [_written(run, happened, data), *_held_out(run, data), *_made_of(run, happened)]
        sections += [replace(section, of=str(run.path)) for section in own] if len(runs) > 1 else own
    return page(f"Headcount: {', '.join(names)}", sections, data)


def _own_held_out(run: Run) -> corpora.Bytes:
    return corpora.open_corpus(run.recipe.corpus).split("valid")


def _figures(runs: Sequence[Run]) -> Section:
    """Every run's own figure, largest thing on the page."""
    bodies = []
    for run in runs:
        figure = run.own_figure()
        name = f"<p class=protocol>{escape(str(run.path))}</p>" if len(runs) > 1 else ""
        if figure is None:
            evaluated = [e for e in run.events() if e["event"] == "evaluated"]
            last = [f"; step {e['step']:,} was evaluated at {_value(e)}" for e in evaluated[-1:]]
            bodies.append(f"{name}<p class=protocol>No figure yet: it has not come to its end{''.join(last)}.</p>")
            continue
        line = str(Figure(**figure)).partition(" · ")[2]
        bodies.append(
            f'{name}<div class="figure">{figure["value"]:.4f} <small>{escape(figure["unit"])}</small></div>'
            f"<p class=protocol>{escape(line)}</p><pre class=wrap>{escape(figure['command'])}</pre>"
            + _other_figures([other for other in run.figures() if other != figure])
        )
    return Section(
        "The figure", "Never without the protocol it was measured by; the command gives it again.", "".join(bodies)
    )


def _value(evaluated: dict[str, Any]) -> str:
    """What an evaluation during training found."""
    return f"{evaluated['bits_per_byte']:.4f} {bits_in(was_exact(evaluated))}"


def _other_figures(figures: Sequence[dict[str, Any]]) -> str:
    """What else was measured on the run, newest first."""
    if not figures:
        return ""
    rows = []
    for figure in reversed(figures):
        value, _, line = str(Figure(**figure)).partition(" · ")
        rows.append((value, line))
    return f"<p class=about>Also measured on it:</p>{table(rows, ('figure', 'how and on what'))}"


def _written(run: Run, events: Sequence[dict[str, Any]], data: dict[str, Any]) -> Section:
    """What the model wrote after the same prompt at every save."""
    drawn_how = "Drawn after every save from the same held-out prompt (grey), at temperature 1."
    about = f"{drawn_how} <span class=screen>Move the slider.</span>"
    drawn = [e for e in events if e["event"] == "sampled"]
    if not drawn:
        return Section("What it writes", "", "<p>Nothing was saved yet.</p>")
    measured = {e["step"]: _value(e) for e in events if e["event"] == "evaluated"}
    try:
        prompt = _own_held_out(run)[:PROMPT].tobytes()[-SHOWN_PROMPT:].decode(errors="backslashreplace")
    except RequestError:
        prompt = ""
    data["samples"].append(
        [{"step": e["step"], "prompt": prompt, "text": e["text"], "measured": measured.get(e["step"])} for e in drawn]
    )
    last = drawn[-1]
    return Section(
        "What it writes",
        about,
        f'<div class="samples"><input type="range" data-samples="{len(data["samples"]) - 1}" min="0" '
        f'max="{len(drawn) - 1}" value="{len(drawn) - 1}" aria-label="saved step">'
        f'<p class="step about" aria-live="polite">step {last["step"]:,}</p>'
        f'<div class="text"><i>{escape(prompt)}</i>{escape(last["text"])}</div></div>',
    )


def _held_out(run: Run, data: dict[str, Any]) -> list[Section]:
    """Held-out text by bits, and where the bits go; a sentence where that cannot be had."""
    title = "What surprises it"
    if not checkpoint.steps_in(run.checkpoints):
        return [Section(title, "", "<p>There is no checkpoint yet.</p>")]
    try:
        text = _own_held_out(run)
    except RequestError as error:
        return [Section(title, "", f"<p>The corpus is not at hand: {escape(str(error))}</p>")]
    lm = load(run.path)
    return [heat_section(lm, text[:HEAT_BYTES].tobytes(), title, data), _kinds_section(lm, text[:KIND_BYTES])]


def heat_section(lm: LanguageModel, text: bytes, title: str, data: dict[str, Any]) -> Section:
    """A text coloured by bits, with what was expected instead."""
    read = lm.read(text)
    bits, expected = lm.likeliest(read)
    value, unit = per_byte(float(bits.sum()), read)
    data["expected"].append(heat.expectations(text, bits, expected))
    number = len(data["expected"]) - 1
    body = (
        f'<div class="heated" data-expected="{number}">{heat.coloured(text, bits)}'
        f"{heat.scale('0 bits: it was certain', f'{heat.CLAMP:g} bits: a guess among 256')}"
        f'<div class="beside candidates" aria-live="polite"><p class="about">Point at a byte, or go there with the '
        f"arrow keys: the ten likeliest come here.</p></div></div>"
    )
    about = f"{counted(len(text), 'byte')}, {value:.3f} {unit}, from an empty state. The warmer, the more bits."
    if lm.tokens.kind not in ("bytes", "legacy-txl"):
        about += " The bits of a token's last byte hold that it ends there, which the likeliest bytes do not show."
    return Section(title, about, body)


def _kinds_section(lm: LanguageModel, text: corpora.Bytes) -> Section:
    read = lm.read(text)
    bits = np.concatenate(list(lm.score_pieces(read)))
    value, unit = per_byte(float(bits.sum()), read)
    charts = [
        bar_chart(
            [(s.name, s.bits, f"{s.bits / bits.sum():.0%} of the bits, {s.bits / s.count:.2f} a byte") for s in shares],
            label,
        )
        for shares, label in (
            (kinds.by_kind(text, bits), "bits by kind of byte"),
            (kinds.by_place_in_word(text, bits), "bits by place in a word"),
        )
    ]
    about = f"The first {len(text):,} held-out bytes, read as one stream: {value:.3f} {unit}."
    return Section("Where the bits go", about, "<br>".join(charts))


def _made_of(run: Run, events: Sequence[dict[str, Any]]) -> list[Section]:
    """The architecture, the recipe, the machine."""
    facts, unit = describe(str(run.path)), unit_of(run.recipe)
    started = next((e for e in reversed(events) if e["event"] in ("started", "resumed")), None)
    ended = next((e for e in reversed(events) if e["event"] == "finished"), None)
    last = next((e for e in reversed(events) if e["event"] == "step"), None)
    begun = started or {}
    told = {**begun.get("machine", {}), **begun.get("fingerprint", {})}
    machine = [(name.replace("_", " "), str(value)) for name, value in told.items()]
    if last:
        machine.append(("learnt from", f"{last['bytes']:,} bytes in {in_seconds(last['seconds'])} seconds of training"))
    if ended and ended.get("memory"):
        machine.append(("most memory", f"{ended['memory'] / 2**20:,.0f} MiB"))
    counts = [
        ("parameters", f"{facts['parameters']['in training']:,} in training, {facts['parameters']['in use']:,} in use"),
        ("attention heads", str(facts["heads"])),
        ("state per stream", f"{facts['state_bytes_per_stream'] / 1024:,.0f} KiB with a full window"),
        (f"operations per {unit}", f"{facts[f'flops_per_{unit}']['forward'] / 1e6:,.2f} MFLOP forward"),
    ]
    picture = drawing(outline_of(run), unit)
    return [
        Section("What it is", "From the bytes below to the prediction above.", picture + table(counts)),
        Section("Its recipe", "", f"<pre>{escape(run.recipe_file.read_text(encoding='utf-8'))}</pre>"),
        Section("The machine", "", table(machine)),
    ]

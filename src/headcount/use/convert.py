"""The counts that figures are converted by: of a text, of a corpus's split, as they are given, or a figure's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headcount.counted import counted
from headcount.errors import RequestError
from headcount.learn.run import Run
from headcount.measure.convert import Converted, Counts, convert, count
from headcount.tables import CorpusTable
from headcount.text.corpora import open_corpus, open_text


def counts_of(
    text: str | None, corpus: str | None, split: str | None, given: Mapping[str, int | None], tokens: int | None
) -> Counts:
    """The counts of the one thing that is named: a text, a corpus, or numbers."""
    told = {name: number for name, number in given.items() if number is not None}
    named = [bool(text), bool(corpus), bool(told)]
    if sum(named) > 1:
        raise RequestError("the counts come from --text, from --corpus or from numbers: name one of them")
    if split is not None and corpus is None:
        raise RequestError("--split belongs to --corpus")
    if text is not None:
        return count(open_text(text), tokens)
    if corpus is not None:
        return count(open_corpus(CorpusTable(name=corpus)).split(split or "test"), tokens)
    if not told and tokens is None:
        raise RequestError("a figure is converted by counts: name a --text, a --corpus, or numbers such as --bytes")
    return Counts(tokens=tokens, **told)


def figure_of(path: str, split: str | None) -> dict[str, Any]:
    """A run's own figure, or its newest on a split."""
    run = Run.existing(path)
    figures = [
        figure
        for figure in run.figures()
        if "curve" not in figure["protocol"] and split in (None, figure["corpus"]["split"])
    ]
    if not figures:
        on = f" --split {split}" if split else ""
        raise RequestError(f"{path} has no figure{on and f' on {split}'} yet: headcount evaluate {path}{on}")
    return (run.own_figure() if split is None else None) or figures[-1]


def convert_figure(figure: Mapping[str, Any]) -> tuple[Converted, list[str]]:
    """A figure in every unit, by the counts of the very text that it was measured on; and what is to be minded."""
    tokens, left_out, kept = figure["tokens"], figure["protocol"].get("not_scored", 0), figure["corpus"].get("counts")
    counts, minded = Counts(bytes=figure["bytes"], tokens=tokens["scored"]), []
    if not tokens["exact"]:
        minded.append("The text cannot be restored from its tokens: these are not all the bits of its words.")
    elif kept is None:
        minded.append("The counts of its text were not kept: headcount evaluate measures it again, with them.")
    else:
        counts = Counts(**kept, tokens=None if left_out else tokens["scored"])
        if left_out:
            minded.append(f"Not scored: {counted(left_out, 'byte')}, counted as if it had cost as much as the others.")
    return convert(figure["value"], "bits-per-byte", counts), minded


def perplexity_of(figure: Mapping[str, Any]) -> float | None:
    """Per word and <eos>, as published figures on WikiText are; None where the counts are not known."""
    if figure["tokens"]["kind"] == "words":  # they are the words and the <eos>
        return math.exp(figure["nats"] / figure["tokens"]["scored"]) if "nats" in figure else None
    return convert_figure(figure)[0].values.get("perplexity-per-word-with-eos")

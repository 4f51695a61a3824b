"""The counts that figures are converted by: of a text, of a corpus's split, or as they are given."""

from __future__ import annotations

from collections.abc import Mapping

from headcount.errors import RequestError
from headcount.measure.convert import Counts, count
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

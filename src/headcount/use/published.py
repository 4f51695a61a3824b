"""The papers' tables as data, and beside every row what is ours: counted parameters and heads, and runs.

`published.toml` holds the rows as they were printed. A row whose system has a paper recipe is counted on that recipe;
a run stands for it if its model is that recipe's and its corpus is the row's. Rows are put together by the way their
bits were counted, in the order of the papers: figures of different ways cannot be ranked, so nothing is.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.errors import HeadcountError, RequestError, nearest
from headcount.learn.run import Run
from headcount.models import configure
from headcount.recipe import Recipe, check_table, read
from headcount.text.tokens import Bytes
from headcount.use import recipe_files
from headcount.use.convert import perplexity_of
from headcount.use.describe import describe

NOT_BUILT = "not built yet"
NO_RECIPE = "no recipe"
NOT_TRAINED = "not trained here"
PER_WORD = "perplexity per word"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of one table, as printed, and what is known of its system."""

    corpus: str
    name: str
    source: str
    year: int
    unit: str
    parameters: str | None = None
    heads: int | None = None
    valid: str | None = None
    test: str
    way: str
    protocol: str
    formula: str | None = None
    """Parameters counted from the published sizes, where no model of ours counts them."""
    kind: str | None = None
    recipe: str | None = None
    notes: tuple[str, ...] = ()
    caveat: str | None = None
    """Of the whole table, if it was not at hand."""


@dataclass(frozen=True)
class Counted:
    """What the paper recipe's model has."""

    in_training: int
    in_use: int
    heads: int


@dataclass(frozen=True)
class Standing:
    """A run that stands for a row, and its figure on the most telling split, if one was measured."""

    run: str
    figure: Mapping[str, Any] | None
    steps: int | None
    """That its recipe asks for."""
    perplexity: float | None = None
    """Per word, with <eos>: the figure in the unit of a table that has this one, if it can be had."""


@dataclass(frozen=True)
class Entry:
    """A row and what is ours beside it."""

    row: Row
    counted: Counted | None
    runs: tuple[Standing, ...]

    @property
    def ours(self) -> str:
        """What there is of ours if there is no run."""
        if self.row.kind is None:
            return NOT_BUILT
        return NOT_TRAINED if self.row.recipe else NO_RECIPE


@dataclass(frozen=True)
class Group:
    """Rows whose bits were counted in one way."""

    way: str
    about: str
    differs: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    """All that was printed on one corpus."""

    corpus: str
    unit: str
    groups: tuple[Group, ...]
    left_out: tuple[str, ...]
    """Folders that look like runs and cannot be read, and why."""


@functools.cache
def _data() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))


def rows() -> tuple[Row, ...]:
    """Every row of every table, in the order of the papers."""
    data = _data()
    return tuple(_row(data, table, printed) for table in data["tables"] for printed in table["rows"])


def corpora() -> tuple[str, ...]:
    """The corpora that there are tables on."""
    return tuple(dict.fromkeys(table["corpus"] for table in _data()["tables"]))


def table(corpus: str, folders: Sequence[str] | None = None) -> Table:
    """The rows on one corpus; runs are looked for in `folders` (`runs` by default), each a run or a folder of runs."""
    if corpus not in corpora():
        raise RequestError(f"there is no table on {corpus}: {nearest(corpus, corpora())}")
    for folder in folders or ():
        if not Path(folder).is_dir():
            raise RequestError(f"{folder}: no such folder")
    found, left_out = _runs(folders or ["runs"])
    chosen = [row for row in rows() if row.corpus == corpus]
    entries = [Entry(row, _counted(row), tuple(_standing(row, found))) for row in chosen]
    groups = tuple(
        Group(way, facts["about"], _on(corpus, facts["differs"]), members)
        for way, facts in _data()["ways"].items()
        if (members := tuple(entry for entry in entries if entry.row.way == way))
    )
    return Table(corpus, chosen[0].unit, groups, tuple(left_out))


def _row(data: Mapping[str, Any], table: Mapping[str, Any], printed: Mapping[str, Any]) -> Row:
    """What is printed, what is known of the system on this corpus, and all notes together."""
    keys = dict(printed)
    system = {key: _on(table["corpus"], value) for key, value in data["systems"][keys.pop("system")].items()}
    paper = data["papers"][table["paper"]]
    notes = (keys.pop("note", None), system.pop("note", None))
    known = {**system, **keys, "caveat": paper.get("caveat")}
    fields = {
        **{key: value for key, value in known.items() if value is not None},
        "corpus": table["corpus"],
        "unit": table["unit"],
        "source": f"{paper['name']}, {table['number']}",
        "notes": [note for note in notes if note],
    }
    return check_table(Row, fields, "row")


def _on(corpus: str, value: Any) -> Any:
    """What is said of a corpus, where corpora differ."""
    return value.get(corpus) if isinstance(value, Mapping) else value


def _counted(row: Row) -> Counted | None:
    return _count_recipe(row.recipe) if row.recipe else None


@functools.cache
def _count_recipe(recipe: str) -> Counted:
    facts = describe(recipe)
    return Counted(facts["parameters"]["in training"], facts["parameters"]["in use"], facts["heads"])


def _runs(folders: Iterable[str]) -> tuple[dict[str, Recipe], list[str]]:
    """The recipes of all runs in these folders by path, and what could not be read."""
    found: dict[str, Recipe] = {}
    left_out = []
    for folder in folders:
        here = Path(folder) / "recipe.toml"
        for file in [here] if here.is_file() else sorted(Path(folder).glob("*/recipe.toml")):
            try:
                found[str(file.parent)] = read(file)
            except HeadcountError as error:  # one old run must not hide all the others
                left_out.append(f"{file.parent} is left out: {error}")
                continue
            left_out += Run(file.parent).damage()
    return found, left_out


def _standing(row: Row, runs: Mapping[str, Recipe]) -> Iterable[Standing]:
    """The runs with this row's model on this row's corpus."""
    if row.recipe is None:
        return
    paper = read(recipe_files.find(row.recipe))
    for path, recipe in runs.items():
        if recipe.corpus.name == row.corpus and _same_model(recipe, paper):
            figure = _figure(path, row.corpus)
            perplexity = perplexity_of(figure) if figure is not None and row.unit == PER_WORD else None
            yield Standing(path, figure, recipe.train.steps, perplexity)


def _same_model(one: Recipe, paper: Recipe) -> bool:
    """Whether two model tables mean the same, defaults filled in; how many symbols there are is the tokens' matter."""
    if one.model["kind"] != paper.model["kind"]:
        return False
    published = paper.published.vocabulary if paper.published else None
    vocabulary = max(published or 0, Bytes().vocabulary)
    first, second = (configure({**r.model, "vocabulary": vocabulary}, vocabulary)[1] for r in (one, paper))
    return bool(first == second)


def _figure(path: str, corpus: str) -> Mapping[str, Any] | None:
    """A run's figure on this corpus: on test before valid, on more bytes before fewer, the newest of equal ones.

    A point of a curve is measured with another window than the run's and stands for nothing.
    """
    alike = [
        figure
        for figure in Run(path).figures()
        if figure["corpus"]["name"] == corpus and "curve" not in figure["protocol"]
    ]
    order = {"test": 1, "valid": 0}
    return max(
        (figure for figure in reversed(alike) if figure["corpus"]["split"] in order),
        key=lambda figure: (order[figure["corpus"]["split"]], figure["bytes"]),
        default=None,
    )

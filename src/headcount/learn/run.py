"""A run directory: the recipe, the metrics, the figures and the checkpoints of one run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from headcount import durable
from headcount import recipe as recipes
from headcount.counted import counted
from headcount.errors import DataError, RequestError, nearest
from headcount.learn import checkpoint, events, lock
from headcount.measure.figure import Figure
from headcount.recipe import Recipe
from headcount.text import corpora
from headcount.text import tokens as kinds
from headcount.text.tokens import Tokens


class Run:
    """A run directory that holds a recipe."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.recipe_file = self.path / "recipe.toml"
        self.metrics_file = self.path / "metrics.jsonl"
        self.figures_file = self.path / "figures.jsonl"
        self.best_file = self.path / "best.json"
        self.tokens_file = self.path / "tokens.json"
        self.checkpoints = self.path / "checkpoints"

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @classmethod
    def existing(cls, path: Path | str) -> Run:
        """The run at a path, or a sentence about what is there instead."""
        run = cls(path)
        if not run.recipe_file.is_file():
            there = "there is no such folder" if not run.path.exists() else "it holds no recipe.toml"
            there = "its recipe.toml is not a file" if run.recipe_file.exists() else there
            # By their names: the folder that they share would make any of them look alike.
            siblings = [p.parent.name for p in run.path.parent.glob("*/recipe.toml") if p.is_file()]
            inside = str(run.path.parent / "_")[:-1]
            hint = f"; {nearest(run.path.name, siblings, inside)}" if siblings else ""
            raise RequestError(f"{run.path} is not a run: {there}{hint}")
        return run

    @property
    def recipe(self) -> Recipe:
        """The resolved recipe."""
        return recipes.read(self.recipe_file)

    @property
    def tokens(self) -> Tokens:
        """The tokens of the run: what they learnt lies beside the recipe, which has its hash."""
        table = self.recipe.tokens
        if (same := kinds.fixed(table)) is not None:
            return same
        try:
            learnt = json.loads(self.tokens_file.read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(
                f"{self.tokens_file}: {error.strerror}; without it nothing can be read or written"
            ) from error
        except ValueError as error:
            raise DataError(f"{self.tokens_file} is damaged: {error}") from error
        if kinds.hash_of(learnt) != table.sha256:  # before anything is made of it: a library would trust it
            raise DataError(f"{self.tokens_file} is damaged: its hash is not the one in {self.recipe_file}")
        try:
            return kinds.read(learnt)
        except DataError as error:
            raise DataError(f"{self.tokens_file} is damaged: {error}") from error

    def held(self) -> AbstractContextManager[None]:
        """Hold the run's lock."""
        return lock.held(self.path)

    def write_recipe(self, text: str) -> None:
        """Write the resolved recipe."""
        durable.write_text(self.recipe_file, text)

    def begin(self, text: str, tokens: Tokens) -> None:
        """Write the recipe of a new run: from here on the folder is one. If it cannot be, what we made goes."""
        try:
            if (learnt := tokens.learnt()) is not None:
                durable.write_json(self.tokens_file, learnt)
            self.write_recipe(text)
        except OSError as error:
            for ours in (".lock", ".holder.json", self.tokens_file.name):
                (self.path / ours).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # what was there before stays, and so does the folder around it
                self.path.rmdir()
            raise RequestError(f"cannot write {self.recipe_file}: {error.strerror}") from error

    def events(self) -> list[dict[str, Any]]:
        """Everything that `metrics.jsonl` holds."""
        return events.read(self.metrics_file)

    def best(self) -> int | None:
        """The step of the best checkpoint, if it is there."""
        try:
            step = json.loads(self.best_file.read_text())["step"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return step if isinstance(step, int) and checkpoint.folder_of(self.checkpoints, step).is_dir() else None

    def set_best(self, best: dict[str, Any] | None) -> None:
        """Say which checkpoint is the best; None says that none is known."""
        if best is None:
            self.best_file.unlink(missing_ok=True)
        else:
            durable.write_json(self.best_file, best)

    def choose(self, which: str | None = None) -> int:
        """The step of a checkpoint by name: best (the default, else the last), last, or a number."""
        steps = checkpoint.steps_in(self.checkpoints)
        if not steps:
            raise RequestError(f"{self.path} has no checkpoint yet: headcount resume {self.path}")
        if which in (None, "best"):
            best = self.best()
            if best is None and which == "best":
                raise RequestError(f"{self.path} has no best checkpoint: it was not evaluated yet")
            return steps[-1] if best is None else best
        if which == "last":
            return steps[-1]
        if which is not None and which.isdecimal() and int(which) in steps:
            return int(which)
        raise RequestError(f"--checkpoint {which}: there is best, last, {', '.join(map(str, steps))}")

    def add_figure(self, figure: Figure) -> None:
        """Append a figure; one write, so that no lock is needed."""
        line = json.dumps(figure.to_dict()).encode() + b"\n"
        try:
            descriptor = os.open(self.figures_file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                size = os.fstat(descriptor).st_size
                os.lseek(descriptor, max(0, size - 1), os.SEEK_SET)
                torn = size > 0 and os.read(descriptor, 1) != b"\n"
                os.write(descriptor, b"\n" + line if torn else line)
            finally:
                os.close(descriptor)
        except OSError as error:  # the figure is right all the same, and is printed
            print(f"the figure could not be kept in {self.figures_file}: {error.strerror}", file=sys.stderr)

    def own_figure(self) -> dict[str, Any] | None:
        """What the run is worth: of its best checkpoint's figures on its own held-out split the one on most bytes."""
        own = corpora.display_name(self.recipe.corpus)
        best = self.best()
        found = [
            figure
            for figure in self.figures()
            if figure["model"]["step"] == best
            and "curve" not in figure["protocol"]
            and (figure["corpus"]["name"], figure["corpus"]["split"]) == (own, "valid")
        ]
        # Training kept the first of them; what was asked for later with another window or protocol is something else.
        alike = [figure for figure in found if measured_alike(figure, found[0])]
        return max(reversed(alike), key=lambda figure: figure["bytes"], default=None)  # the newest of equal ones

    def figures(self) -> list[dict[str, Any]]:
        """Every figure ever measured on this run."""
        return [_as_now(figure) for figure in events.lines(self.figures_file, _is_figure).whole]

    def damage(self) -> list[str]:
        """A sentence for each of the files of which lines are damaged; these are left out everywhere."""
        files = ((self.metrics_file, events.is_event), (self.figures_file, _is_figure))
        found = ((file, events.lines(file, whole).damaged) for file, whole in files)
        return [f"{counted(number, 'damaged line')} of {file} passed over" for file, number in found if number]


_HOW = ("name", "window", "clamp", "restarts_after")
"""Of a protocol: what alters what a model is worth, and is asked for by options."""


def measured_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two figures were measured in one way, on whatever bytes."""
    return all(one["protocol"].get(key) == other["protocol"].get(key) for key in _HOW)


def require_different(paths: Sequence[str | Path]) -> None:
    """Refuse a run that is named twice: it would stand beside itself."""
    seen: dict[Path, str | Path] = {}
    for path in paths:
        if (place := Path(path).resolve()) in seen:
            again = "" if str(path) == str(seen[place]) else f", once as {path}"
            raise RequestError(f"{seen[place]} is named twice{again}")
        seen[place] = path


_FIGURE: Mapping[str, events.Kinds] = {
    "protocol": {"name": str, "streams": int, "segment": int, "state": str, "not_scored": int},
    "corpus": {"name": str, "split": str, "sha256": str},
    "model": {"kind": str, "sha256": str, "step": (int, type(None))},
    "tokens": {"kind": str, "scored": int, "exact": bool},
}
"""What all that read figures rely on."""


def _is_figure(line: dict[str, Any]) -> bool:
    """Whether a line is a figure: somebody may have edited the file, or another program written it."""
    if set(line) != {field.name for field in dataclasses.fields(Figure)}:
        return False
    if not events.holds(line, {"value": events.NUMBER, "nats": events.NUMBER, "unit": str, "bytes": int}):
        return False
    now = _as_now(dict(line))
    return all(isinstance(now[name], dict) and events.holds(now[name], kinds) for name, kinds in _FIGURE.items())


def _as_now(figure: dict[str, Any]) -> dict[str, Any]:
    """A figure as it is written now: before there were other kinds, the tokens were a word."""
    if isinstance(figure["tokens"], str):
        figure["tokens"] = {"kind": figure["tokens"], "scored": figure["bytes"], "exact": True}
    return figure


def claim(path: Path | None, stem: str) -> Run:
    """Make the folder of a new run: `path`, or the first free of `runs/<stem>`, `runs/<stem>-2`, …"""
    if path is not None:
        run = Run(path)
        if run.recipe_file.exists():
            raise RequestError(f"{path} holds a run already: headcount resume {path}")
        if path.exists() and (not path.is_dir() or any(not p.name.startswith(".") for p in path.iterdir())):
            raise RequestError(f"{path} exists and is not empty: name another folder with --run")
        _make(path, exist_ok=True)
        return run
    number = 1
    while True:
        candidate = Path("runs") / (stem if number == 1 else f"{stem}-{number}")
        try:
            _make(candidate, exist_ok=False)
            return Run(candidate)
        except FileExistsError:
            number += 1


def _make(path: Path, *, exist_ok: bool) -> None:
    try:
        path.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError:
        raise
    except OSError as error:
        raise RequestError(f"cannot make the run folder {path}: {error.strerror}") from error

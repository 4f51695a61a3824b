"""How much context runs use, side by side: curves by context and by window, effective lengths, the copying probe.

All runs of a group are measured on the same bytes, which is checked by their hash.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headcount.counted import counted
from headcount.errors import RequestError
from headcount.learn.run import require_different
from headcount.measure import probe
from headcount.measure.context import at_context, bytes_fed, doubling, fixed_positions, nats_by_context, room
from headcount.measure.figure import in_words
from headcount.measure.protocols import require
from headcount.measure.recl import SHARES, Length, Walk, held, lengths
from headcount.use.load import LanguageModel, load

Bytes = npt.NDArray[np.uint8]
Nats = npt.NDArray[np.float64]

LONGEST_WINDOW, LARGEST_WINDOW, WINDOW_BYTES = 4_096, 1 << 24, 65_536
LONGEST_DISTANCE, TRIALS = 1_024, 256
RESTARTS = "begins a new window after so many bytes, and is fed only the last of longer contexts"


@dataclass(frozen=True)
class Asked:
    """Which bytes: a file, or a split of the runs' own corpus; perhaps only the first."""

    text: Path | None = None
    split: str | None = None
    """valid, if it is the corpus."""
    limit: int | None = None


@dataclass(frozen=True)
class Group:
    """Runs, and the bytes that all of them are measured on."""

    models: tuple[LanguageModel, ...]
    asked: Asked
    text: Bytes
    corpus: Mapping[str, Any]

    @property
    def measured_on(self) -> str:
        """The bytes in words."""
        corpus = self.corpus
        return f"{corpus['name']} {corpus['split']}, {counted(corpus['bytes'], 'byte')}, sha256 {corpus['sha256'][:12]}"


@dataclass(frozen=True)
class Curve:
    """One run's curve."""

    run: str
    model: Mapping[str, Any]
    values: tuple[float, ...]
    errors: tuple[float, ...] | None = None
    """Standard errors of the values, where they are means over positions or trials."""
    mark: int | None = None
    """A place on the axis that says something of this run."""
    arrays: Mapping[str, Any] = field(default_factory=dict)
    """What the values were made of."""


@dataclass(frozen=True)
class Curves:
    """Curves of several runs over the same places."""

    along: str
    """What runs along the bottom: context, window or distance."""
    unit: str
    about: str
    places: tuple[int, ...]
    mark_means: str
    corpus: Mapping[str, Any]
    curves: tuple[Curve, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        runs = [
            {
                "run": curve.run,
                "model": dict(curve.model),
                "values": list(curve.values),
                **({"errors": list(curve.errors)} if curve.errors else {}),
                **({"mark": curve.mark} if curve.mark else {}),
                **curve.arrays,
            }
            for curve in self.curves
        ]
        return {
            "along": self.along,
            "unit": self.unit,
            "about": self.about,
            "places": list(self.places),
            "mark": self.mark_means,
            "corpus": dict(self.corpus),
            "runs": runs,
        }


def gather(paths: Sequence[str], asked: Asked, *, checkpoint: str | None = None, device: str | None = None) -> Group:
    """Load the runs and find the bytes that they are measured on: the same for all, or it is refused."""
    if not paths:
        raise RequestError("name one or more runs")
    require_different(paths)
    if asked.limit is not None and asked.limit < 1:
        raise RequestError(f"--limit {asked.limit}: must be at least 1")
    models = tuple(load(path, checkpoint=checkpoint, device=device) for path in paths)
    found: list[tuple[str, str, Bytes, str]] = []
    for lm in models:
        lm.require_bytes("how much context is used")
        name, split, text = lm.source(asked.text, asked.split)
        text = text[: asked.limit]
        found.append((name, split, text, hashlib.sha256(text.data).hexdigest()))
    name, split, text, sha256 = found[0]
    for lm, other in zip(models, found, strict=True):
        if other[3] != sha256:
            raise RequestError(
                f"{lm.path} would be measured on other bytes than {models[0].path}: name one text with --text"
            )
    corpus = {"name": name, "split": split, "sha256": sha256, "bytes": len(text)}
    return Group(models, asked, text, corpus)


def by_context(
    group: Group, *, most: int | None, positions: int | None, tell: Callable[[str], None] = lambda line: None
) -> Curves:
    """Bits per byte at fixed positions by the number of bytes before them."""
    most, count = room(len(group.text), most, positions)
    places, contexts = fixed_positions(len(group.text), most, count), doubling(most)
    curves = []
    for lm in group.models:
        nats = nats_by_context(lm.model, group.text, places, contexts, _telling(tell, str(lm.path)))
        curves.append(_curve(lm, nats, {"positions": places.tolist(), "nats": nats.tolist()}))
    positions_of = "1 position of" if count == 1 else f"{count:,} positions of"
    about = f"{positions_of} {group.measured_on}; each from an empty state, fed exactly so many bytes before it"
    return Curves("context", "bits per byte", about, contexts, RESTARTS, group.corpus, tuple(curves))


def by_window(
    group: Group, *, most: int | None, how: Mapping[str, Any], tell: Callable[[str], None] = lambda line: None
) -> Curves:
    """The figures of evaluations with windows of 1, 2, 4 …; every one is kept in its run."""
    most = LONGEST_WINDOW if most is None else most
    if not 1 <= most <= LARGEST_WINDOW:
        raise RequestError(f"--most {most}: must be from 1 to {LARGEST_WINDOW:,}")
    windows = doubling(most)
    asked, curves = group.asked, []
    for lm in group.models:
        for window in windows:  # what cannot be measured is refused before anything is
            try:
                require(lm.model, len(group.text), lm.how({**how, "window": window}), split=group.corpus["split"])
            except RequestError as error:
                raise RequestError(f"{lm.path}: {error}") from None
    for lm in group.models:
        figures = []
        for window in windows:
            tell(f"{lm.path}: window {window:,}")
            given = {**how, "window": window, "limit": asked.limit}
            figures.append(lm.evaluate(asked.text, split=asked.split, curve="window", **given))
        curves.append(
            Curve(
                run=str(lm.path),
                model=lm.describe(),
                values=tuple(figure.value for figure in figures),
                mark=lm.model.restarts_after or getattr(lm.model.config, "window", None),
                arrays={"figures": [figure.to_dict() for figure in figures]},
            )
        )
    about = f"{_measured_by(curves)}; on {group.measured_on}; the same weights with other windows"
    return Curves("window", "bits per byte", about, windows, "has this window of its own", group.corpus, tuple(curves))


def _measured_by(curves: Sequence[Curve]) -> str:
    """The protocol of the figures of a curve by window, run by run where they differ."""
    by_run = {curve.run: in_words(curve.arrays["figures"][-1]["protocol"], with_window=False) for curve in curves}
    if len(set(by_run.values())) == 1:
        return next(iter(by_run.values()))
    return "; ".join(f"{run} by {protocol}" for run, protocol in by_run.items())


@dataclass(frozen=True)
class Lengths:
    """Relative effective context lengths of a group, by share of the hardest positions."""

    walk: Walk
    positions: int
    about: str
    corpus: Mapping[str, Any]
    runs: tuple[str, ...]
    restart: Mapping[str, int]
    """After how many bytes the runs that do begin a new window: they are fed only the last of longer contexts."""
    by_share: Mapping[float, Sequence[Length]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **vars(self.walk),
            "positions": self.positions,
            "corpus": dict(self.corpus),
            "restart": dict(self.restart),
            "runs": {
                run: {f"{share:g}": vars(found[number]) for share, found in self.by_share.items()}
                for number, run in enumerate(self.runs)
            },
        }


def effective_lengths(
    group: Group,
    *,
    start: int,
    step: int,
    most: int | None,
    positions: int | None,
    tell: Callable[[str], None] = lambda line: None,
) -> Lengths:
    """How far back each run of the group gains, in bytes; contexts are measured as they are walked to."""
    if start < 1 or step < 1:
        raise RequestError(f"start {start} and step {step}: both must be at least 1")
    most, count = room(len(group.text), most, positions)
    if start + step > most:
        raise RequestError(f"start {start} and step {step} lead beyond the longest context, {most:,}")
    places = fixed_positions(len(group.text), most, count)

    @functools.cache
    def nats(number: int, fed: int) -> Nats:
        lm = group.models[number]
        tell(f"{lm.path}: context {fed:,}")
        return at_context(lm.model, group.text, places, fed)

    def losses_at(context: int) -> Nats:
        return np.stack([nats(number, bytes_fed(lm.model, context)) for number, lm in enumerate(group.models)])

    walk, ends = Walk(start, step, most), [lm.model.restarts_after for lm in group.models]
    by_share = {share: [*map(held, lengths(losses_at, walk, share), ends)] for share in SHARES}
    about = (
        f"relative effective context length in bytes: from {start:,} in steps of {step:,} up to {most:,}, while "
        f"perplexity falls by {walk.threshold:g} of itself, against a baseline of these {len(group.models)}; "
        f"{count:,} positions of {group.measured_on}"
    )
    runs = tuple(str(lm.path) for lm in group.models)
    restart = {run: end for run, end in zip(runs, ends, strict=True) if end is not None}
    return Lengths(walk, count, about, group.corpus, runs, restart, by_share)


def copying(
    group: Group, *, most: int | None, trials: int = TRIALS, tell: Callable[[str], None] = lambda line: None
) -> Curves:
    """What having read a random word once saves when it begins again, by distance."""
    if trials < 1:
        raise RequestError(f"--trials {trials}: must be at least 1")
    if most is None:
        most = max(probe.NEAREST, min(LONGEST_DISTANCE, len(group.text) - probe.length(0)))
    distances = probe.distances(most)
    curves = []
    for lm in group.models:
        tell(f"{lm.path}: distances up to {distances[-1]:,}")
        found = probe.copying(lm.model, group.text, distances, trials=trials)
        arrays = {"with": _bits(found.with_first), "without": _bits(found.without)}
        curves.append(_curve(lm, found.gain, arrays))
    about = (
        f"{counted(trials, 'random word')} of {probe.LETTERS} letters for every distance, planted in "
        f"{group.measured_on}; scored after the first {probe.CUE} letters of the second occurrence, with the first "
        "against without"
    )
    mark = "begins a new window after so many bytes"
    return Curves("distance", "bits per byte gained", about, distances, mark, group.corpus, tuple(curves))


def _curve(lm: LanguageModel, nats: Nats, arrays: Mapping[str, Any]) -> Curve:
    """Means over the second axis, in bits, with their errors; one number has none."""
    count = nats.shape[1]
    spread = nats.std(axis=1) / math.sqrt(count) / math.log(2) if count > 1 else None
    return Curve(
        run=str(lm.path),
        model=lm.describe(),
        values=tuple(_bits(nats)),
        errors=None if spread is None else tuple(spread.tolist()),
        mark=lm.model.restarts_after,
        arrays=arrays,
    )


def _bits(nats: Nats) -> list[float]:
    means: list[float] = (nats.mean(axis=1) / math.log(2)).tolist()
    return means


def _telling(tell: Callable[[str], None], run: str) -> Callable[[int], None]:
    return lambda context: tell(f"{run}: context {context:,}")

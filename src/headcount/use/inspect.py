"""Looking inside a model: where its heads look, and what its units follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headcount.errors import RequestError
from headcount.measure.features import correlations, features
from headcount.use.load import LanguageModel

SEGMENT = 128
STRONGEST, LISTED, PLACES = 24, 8, 300_000
"""Places that are kept for every byte: at most, at least, and of all heads together if the least allows it."""
COPIED_LEAST, COPIED_WEIGHT, COPIED_MOST = 4, 0.1, 20
"""A copied span has this many bytes and this much weight on its source; so many are kept."""
UNITS_PER_FEATURE = 6


@dataclass(frozen=True)
class Span:
    """Bytes `begin … begin + length` that a head predicted while it read the same bytes further back."""

    begin: int
    source: int
    length: int
    weight: float


@dataclass(frozen=True)
class Head:
    """Where one head looks while it reads a text."""

    name: str
    """Its block and, where a block has several, which of them it is; both from 0, as blocks are in a recipe."""
    places: list[list[tuple[int, float]]]
    """For every byte that is predicted, the strongest (distance, weight); distance 0 is the row just written."""
    distances: npt.NDArray[np.float64]
    """Mean weight at every distance."""
    even: npt.NDArray[np.float64]
    """The same if every byte had spread its weight evenly over the rows that it saw."""
    copied: list[Span]


@dataclass(frozen=True)
class Unit:
    """A recurrent unit, the feature that it follows best, and its course over the text."""

    layer: str
    number: int
    feature: str
    correlation: float
    values: npt.NDArray[np.float64]


def heads(lm: LanguageModel, text: bytes) -> list[Head]:
    """Where every head looks at every byte of a text."""
    lm.require_bytes("inspect")
    if not lm.model.heads:
        raise RequestError(f"{lm.path} has no attention: there is nothing to see")
    pieces, names = _weights(lm, text), _names(lm)
    kept = min(max(PLACES // (len(names) * len(text)), LISTED), STRONGEST)
    return [_head(name, text, [piece[number] for piece in pieces], kept) for number, name in enumerate(names)]


def _names(lm: LanguageModel) -> list[str]:
    """Of all heads, in the order of `look_back`: block by block, the same number in each that has any."""
    blocks = [part.block or 0 for part in lm.model.outline() if part.looks_back is not None]
    of_each = lm.model.heads // len(blocks)
    if of_each == 1:
        return [f"block {block}" for block in blocks]
    return [f"block {block}, head {head}" for block in blocks for head in range(of_each)]


def _weights(lm: LanguageModel, text: bytes) -> list[list[npt.NDArray[np.float32]]]:
    """T × S weights, by segment and head."""
    device = next(lm.model.parameters()).device
    inputs = torch.tensor([[lm.tokens.start, *text[:-1]]], device=device)
    segment = min(SEGMENT, lm.model.longest_segment() or SEGMENT)
    state, pieces = lm.model.start(1), []
    for begin in range(0, len(text), segment):
        weights, state = lm.model.look_back(inputs[:, begin : begin + segment], state)
        pieces.append([w[0].float().cpu().numpy() for w in weights])
    return pieces


def _head(name: str, text: bytes, pieces: list[npt.NDArray[np.float32]], kept: int) -> Head:
    places: list[list[tuple[int, float]]] = []
    totals, even = np.zeros((2, max(piece.shape[1] for piece in pieces)))
    for piece in pieces:
        length, rows = piece.shape
        for t in range(length):
            by_distance = piece[t, : rows - length + t + 1][::-1]
            totals[: len(by_distance)] += by_distance
            saw = int(by_distance.nonzero()[0][-1]) + 1  # beyond a window nothing weighs anything
            even[:saw] += 1 / saw
            order = np.argsort(-by_distance, kind="stable")[:kept]
            places.append([(int(d), float(by_distance[d])) for d in order])
    seen = np.trim_zeros(totals / len(text), "b")
    return Head(name, places, seen, even[: len(seen)] / len(text), _copied(text, places))


def _copied(text: bytes, places: list[list[tuple[int, float]]]) -> list[Span]:
    """Runs of bytes whose strongest source moves along with them and was followed by the same bytes."""
    spans: list[Span] = []
    begin = source = -1
    total = 0.0
    for at in range(len(text) + 1):
        distance, weight = places[at][0] if at < len(text) else (0, 0.0)
        from_place = at - distance
        copies = distance > 0 and weight >= COPIED_WEIGHT and from_place >= 0 and text[from_place] == text[at]
        if begin >= 0 and copies and from_place - source == at - begin:
            total += weight
            continue
        if begin >= 0 and at - begin >= COPIED_LEAST:
            spans.append(Span(begin, source, at - begin, total / (at - begin)))
        begin, source, total = (at, from_place, weight) if copies else (-1, -1, 0.0)
    return sorted(spans, key=lambda span: -span.length * span.weight)[:COPIED_MOST]


@torch.inference_mode()
def units(lm: LanguageModel, text: bytes) -> list[Unit]:
    """For every simple feature the units that follow it best, strongest first; each unit once."""
    lm.require_bytes("inspect")
    device = next(lm.model.parameters()).device
    state, course = lm.model.start(1), []
    for byte in (lm.tokens.start, *text):
        _, state = lm.model(torch.tensor([[byte]], device=device), state)
        course.append({layer: values[0].float().cpu().numpy() for layer, values in lm.model.units(state).items()})
    layers = {layer: np.stack([step[layer] for step in course[1:]]).astype(np.float64) for layer in course[0]}
    if not layers:
        raise RequestError(f"{lm.path} has no recurrent units: there is nothing to see")
    found: dict[tuple[str, int], Unit] = {}
    for feature, values in features(np.frombuffer(text, dtype=np.uint8)).items():
        ranked = [
            Unit(layer, int(number), feature, float(r[number]), course_of[:, number])
            for layer, course_of in layers.items()
            for r in (correlations(course_of, values),)
            for number in np.argsort(-np.abs(r))[:UNITS_PER_FEATURE]
        ]
        for unit in sorted(ranked, key=lambda u: -abs(u.correlation))[:UNITS_PER_FEATURE]:
            known = found.get((unit.layer, unit.number))
            if unit.correlation and (known is None or abs(known.correlation) < abs(unit.correlation)):
                found[unit.layer, unit.number] = unit
    return sorted(found.values(), key=lambda u: -abs(u.correlation))

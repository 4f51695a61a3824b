"""The same SHA-RNN body under several kinds of token: at equal bytes, and at equal seconds.

All lengths are in bytes: the window, the segment that gradients flow through, what a step reads. Under tokens of m
bytes each a window of W bytes is W / m tokens. So at equal bytes all take equally many steps over equal stretches of
text, and only the tokens differ. Bytes set the measure: D bytes in S seconds; each other kind is trained once on D
bytes and once for S seconds. How many steps D bytes are is timed once and kept in the folder, as are the runs; how many
fit into S seconds is known from how long the steps of the first training took: by their median, so that what another
program took from some of them does not decide. Whether the seconds were equal in the end is for the verdict to say.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from headcount import durable
from headcount import recipe as recipes
from headcount.claims.contract import Setting
from headcount.errors import DataError, RequestError
from headcount.learn import calibrate, sizing
from headcount.learn import device as devices
from headcount.learn.interrupt import Interruption
from headcount.learn.plan import settle
from headcount.learn.run import Run
from headcount.models import configure, model_class
from headcount.recipe import Recipe
from headcount.tables import TokensTable
from headcount.text import corpora
from headcount.text import tokens as kinds
from headcount.text.corpora import Bytes, Corpus
from headcount.text.encoding import encode
from headcount.use import train as training

DEFAULT_MINUTES = 12.0
TRAINING_SHARE = 0.6
"""Of the budget; what is left is for measuring."""
BODY_KIND = "sha-rnn"
BODY = sizing.Size(width=128, blocks=1, window=256, streams=16, segment=128)
"""Window and segment in bytes."""
EVALUATIONS = 4
HELD_OUT = 32_768
"""Bytes of held-out text that everything is measured on, at most."""
WARM_UP = 5
"""First steps of a training that say nothing of the others: memory is taken, the window fills."""
PLAN = "plan.json"


@dataclass(frozen=True)
class Kind:
    """A kind of token that takes part."""

    name: str
    table: Mapping[str, Any]
    bytes_per_token: float

    @property
    def is_bytes(self) -> bool:
        """Whether it is what the others are measured against."""
        return bool(self.table["kind"] == "bytes")


@dataclass(frozen=True)
class Training:
    """A run that is wanted."""

    tokens: str
    budget: str
    """`bytes` or `seconds`: what it has as much of as bytes have."""
    steps: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.tokens.replace(' ', '-')}-equal-{self.budget}"


KINDS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("bytes", {"kind": "bytes"}),
    ("wordpieces 1k", {"kind": "wordpieces", "vocabulary": 1_000}),
    ("wordpieces 8k", {"kind": "wordpieces", "vocabulary": 8_000}),
    ("words", {"kind": "words"}),
)


def open_source(setting: Setting) -> Corpus:
    """The corpus: a text is divided as `headcount train` would do it, a named one as it is by itself."""
    table = setting.corpus
    if table.paths:
        length = len(corpora.map_file(corpora.gather(table.paths)))
        table = replace(table, split=sizing.recipe_for(length).corpus.split)
    corpus = corpora.open_corpus(table)
    if (lacks := corpus.lacks()) is not None:
        raise RequestError(lacks)
    return corpus


def held_out_of(corpus: Corpus, limit: int) -> Bytes:
    """Whole lines of the held-out text, so that no kind of token begins or ends within a word."""
    text = corpus.split("valid")
    begin = text[:limit].tobytes().find(b"\n") + 1
    lines = text[begin : begin + limit]
    end = lines.tobytes().rfind(b"\n") + 1
    return lines[:end] if end else lines


def find_kinds(corpus: Corpus, held_out: Bytes) -> tuple[list[Kind], dict[str, str]]:
    """The kinds from whose tokens the held-out text can be restored, and why others are left out."""
    found: list[Kind] = []
    left_out: dict[str, str] = {}
    learnt: dict[str, str] = {}
    train = corpus.split("train")
    for name, table in KINDS:
        tokens = kinds.find(TokensTable(**table), train)
        if tokens.sha256 and (same := learnt.setdefault(tokens.sha256, name)) != name:
            left_out[name] = f"the text has no more than the {tokens.vocabulary:,} symbols of {same}"
            continue
        text = encode(held_out, tokens)
        if text.exact:
            found.append(Kind(name, table, len(train) / len(encode(train, tokens).ids)))
            continue
        unknown = getattr(tokens, "unknown", None)
        missing = int((text.ids == unknown).sum()) if unknown is not None else 0
        left_out[name] = (
            f"the held-out text cannot be restored from them: {missing:,} of {len(text.ids):,} words are unknown"
            if missing
            else "the held-out text cannot be restored from them: its white space is not theirs"
        )
    return found, left_out


def body_recipe(setting: Setting, corpus: Corpus) -> Recipe:
    """What all share, with lengths in bytes."""
    tables = sizing.recipe_for(corpus.ends[-1], BODY).to_dict()
    tables["evaluate"]["limit"] = HELD_OUT
    tables["corpus"] = {"name": setting.corpus.name}
    if setting.corpus.paths:
        tables["corpus"]["path"] = [str(Path(path).absolute()) for path in setting.corpus.paths]
    if corpus.shares is not None:
        tables["corpus"]["split"] = list(corpus.shares)
    tables["train"] = {}
    recipe = recipes.from_dict(tables, setting.set)
    if recipe.model["kind"] != BODY_KIND:
        raise RequestError(f"--set model.kind={recipe.model['kind']}: the claim is about one body, a {BODY_KIND}")
    if "vocabulary" in recipe.model:
        raise RequestError("--set model.vocabulary: every kind of token has its own number of symbols")
    configure(recipe.model, kinds.Bytes().vocabulary)
    if recipe.tokens != TokensTable():
        raise RequestError("--set tokens: the kinds of token are what is compared")
    if recipe.train.steps is not None or recipe.train.epochs is not None:
        raise RequestError("--set train.steps: how long is said by --minutes or --bytes")
    return recipe


def recipe_under(body: Recipe, kind: Kind, steps: int | None = None) -> Recipe:
    """The same body under a kind of token: lengths in tokens."""
    per_token = kind.bytes_per_token
    window = body.model.get("window", BODY.window)
    every = {} if steps is None else {"steps": steps, "evaluate_every": -(-steps // EVALUATIONS)}
    return (
        body.replace("model", window=max(1, round(window / per_token)))
        .replace("batches", segment=max(1, round(body.batches.segment / per_token)))
        .replace("tokens", **kind.table)
        .replace("train", **every)
    )


def train_all(setting: Setting, corpus: Corpus, body: Recipe, found: Sequence[Kind]) -> list[tuple[Run, Training]]:
    """Every kind at equal bytes, then all but bytes at equal seconds; what is finished is not repeated."""
    steps = plan(setting, corpus, body, found)
    (plain,) = (kind.name for kind in found if kind.is_bytes)
    done = {}
    for kind in found:
        wanted = Training(kind.name, "bytes", steps)
        done[kind.name] = train(setting, body, kind, wanted), wanted
    runs = list(done.values())
    for kind in found:
        if not kind.is_bytes:
            faster = step_seconds(done[plain][0]) / step_seconds(done[kind.name][0])
            wanted = Training(kind.name, "seconds", max(1, round(steps * faster)))
            runs.append((train(setting, body, kind, wanted), wanted))
    return runs


def last_step(run: Run) -> Mapping[str, Any]:
    """What a run's log says at its end: bytes and seconds in all."""
    return next(event for event in reversed(run.events()) if event["event"] == "step")


def step_seconds(run: Run) -> float:
    """What a step took, by its log: the median without the first ones, of which half of a short training are kept."""
    done = [(0, 0.0), *((event["step"], event["seconds"]) for event in run.events() if event["event"] == "step")]
    times = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(done)]
    return max(float(statistics.median(times[min(WARM_UP, len(times) // 2) :])), 1e-9)


def plan(setting: Setting, corpus: Corpus, body: Recipe, found: Sequence[Kind]) -> int:
    """Steps of the trainings at equal bytes: those that the folder was begun with, or timed now."""
    file = setting.folder / PLAN
    asked = {
        "corpus": corpus.sha256,
        "set": list(setting.set),
        "minutes": setting.minutes,
        "bytes": setting.bytes,
        "tokens": [kind.name for kind in found],
    }
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["asked"] != asked:
            what = " and ".join(key for key in asked if kept["asked"].get(key) != asked[key])
            raise RequestError(f"{setting.folder} holds this claim with another {what}: name another folder with --run")
        return int(kept["steps"])
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is damaged: {error!r}") from error
    steps = _steps_for(setting, body, found)
    try:
        setting.folder.mkdir(parents=True, exist_ok=True)
        durable.write_json(file, {"asked": asked, "steps": steps})
    except OSError as error:
        raise RequestError(f"cannot write {file}: {error.strerror}") from error
    return steps


def _steps_for(setting: Setting, body: Recipe, found: Sequence[Kind]) -> int:
    """For so many bytes; or so many that all trainings fit into the minutes, by timing a few steps of each kind.

    Nothing is written before every recipe is settled: what cannot be trained must not leave a plan behind.
    """
    if setting.bytes is not None:
        for kind in found:
            settle(recipe_under(body, kind, 1), lambda line: None)
        return max(1, round(setting.bytes / (body.batches.streams * body.batches.segment)))
    device, needed, fixed = devices.choose(setting.device), 0.0, 0.0
    with Interruption() as interruption:
        for kind in found:
            training.say(f"timing steps of {kind.name}")
            ready = settle(recipe_under(body, kind), training.say, minutes=True)
            timing = calibrate.time_steps(ready, device, interruption)
            around = EVALUATIONS * (timing.evaluation + timing.sample)
            # Bytes once; each other kind once for as many steps, and once for as many seconds as bytes took.
            needed += timing.step * len(found) if kind.is_bytes else timing.step
            fixed += around if kind.is_bytes else 2 * around
    budget = 60 * (setting.minutes or DEFAULT_MINUTES) * TRAINING_SHARE
    return max(1, int((budget - min(fixed, budget / 2)) / needed))


def train(setting: Setting, body: Recipe, kind: Kind, wanted: Training) -> Run:
    """The run, made or gone on with if it is not finished."""
    run = Run(setting.folder / wanted.name)
    if any(event["event"] == "finished" for event in run.events()) and run.figures():
        return run
    training.say(f"\n{wanted.tokens}, {wanted.steps:,} steps (equal {wanted.budget})")
    if run.recipe_file.exists():
        return training.resume(run.path, device=setting.device)
    recipe = recipe_under(body, kind, wanted.steps)
    file = setting.folder / "recipes" / f"{wanted.name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    durable.write_text(file, recipes.to_toml(recipe, model_class(recipe.model["kind"]).Config))
    return training.train(file, run=run.path, device=setting.device)

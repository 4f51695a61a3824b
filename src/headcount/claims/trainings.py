"""The same SHA-RNN body under several kinds of token: at equal bytes, and at equal seconds.

All lengths are in bytes: the window, the segment that gradients flow through, what a step reads. Under tokens of m
bytes each a window of W bytes is W / m tokens. So at equal bytes all take equally many steps over equal stretches of
text, and only the tokens differ. Bytes set the measure: D bytes in S seconds; each other kind is trained once on D
bytes and once for S seconds. How many steps that is, is timed once and kept in the folder, as are the runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from headcount.models import model_class
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
BODY = sizing.Size(width=128, blocks=1, window=256, streams=16, segment=128)
"""Window and segment in bytes."""
EVALUATIONS = 4
HELD_OUT = 32_768
"""Bytes of held-out text that everything is measured on, at most."""
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
    if corpus.ends[-1] < corpora.LEAST_BYTES:
        raise RequestError(f"{corpus.file} has {corpus.ends[-1]} bytes: at least {corpora.LEAST_BYTES} are needed")
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
    train = corpus.split("train")
    for name, table in KINDS:
        tokens = kinds.find(TokensTable(**table), train)
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


def plan(setting: Setting, corpus: Corpus, body: Recipe, found: Sequence[Kind]) -> list[Training]:
    """The trainings for a budget: those that the folder was begun with, or timed now."""
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
            changed = [key for key in asked if kept["asked"].get(key) != asked[key]]
            what = " and ".join(changed)
            raise RequestError(f"{setting.folder} holds this claim with another {what}: name another folder with --run")
        return [Training(**training) for training in kept["trainings"]]
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is damaged: {error!r}") from error
    trainings = _timed(setting, body, found)
    setting.folder.mkdir(parents=True, exist_ok=True)
    durable.write_json(file, {"asked": asked, "trainings": [asdict(training) for training in trainings]})
    return trainings


def _timed(setting: Setting, body: Recipe, found: Sequence[Kind]) -> list[Training]:
    """Time a few steps of each kind, and share the budget out."""
    device, timings = devices.choose(setting.device), {}
    with Interruption() as interruption:
        for kind in found:
            training.say(f"timing steps of {kind.name}")
            ready = settle(recipe_under(body, kind), training.say, minutes=True)
            timings[kind.name] = calibrate.time_steps(ready, device, interruption)
            interruption.check()
    (plain,) = (kind for kind in found if kind.is_bytes)
    others = [kind for kind in found if not kind.is_bytes]
    step = {name: timing.step for name, timing in timings.items()}
    per_step = body.batches.streams * body.batches.segment
    if setting.bytes is not None:
        steps = max(1, round(setting.bytes / per_step))
    else:
        around = {name: EVALUATIONS * (timing.evaluation + timing.sample) for name, timing in timings.items()}
        fixed = around[plain.name] + sum(2 * around[kind.name] for kind in others)
        budget = 60 * (setting.minutes or DEFAULT_MINUTES) * TRAINING_SHARE
        # Bytes once; each other kind once for as many steps, and once for as many seconds.
        one = step[plain.name] * (1 + len(others)) + sum(step[kind.name] for kind in others)
        steps = max(1, int((budget - min(fixed, budget / 2)) / one))
    seconds = steps * step[plain.name]
    return [
        Training(plain.name, "bytes", steps),
        *(Training(kind.name, "bytes", steps) for kind in others),
        *(Training(kind.name, "seconds", max(1, round(seconds / step[kind.name]))) for kind in others),
    ]


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

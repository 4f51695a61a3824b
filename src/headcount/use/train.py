"""Training from the outside: a recipe or texts become a run; a run goes on. The commands are thin wrappers of these."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headcount import durable
from headcount import recipe as recipes
from headcount.counted import counted
from headcount.errors import BusyError, RequestError
from headcount.learn import calibrate, sizing, tensorboard
from headcount.learn import device as devices
from headcount.learn import resume as resuming
from headcount.learn.checkpoint import Checkpoint
from headcount.learn.console import ConsoleSink
from headcount.learn.device import Device
from headcount.learn.events import MetricsLog
from headcount.learn.interrupt import Interruption
from headcount.learn.plan import Plan, settle
from headcount.learn.run import Run, claim
from headcount.learn.trainer import Trainer
from headcount.measure.protocols import Measurement
from headcount.models import configure
from headcount.models.contract import count_parameters
from headcount.recipe import Recipe
from headcount.text import corpora
from headcount.text import tokens as kinds
from headcount.text.tokens import Tokens
from headcount.use import load, recipe_files


def say(line: str) -> None:
    """What is said to a person, if one is still there."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def train(
    *what: str | Path,
    run: str | Path | None = None,
    set: Sequence[str] = (),
    steps: int | None = None,
    minutes: float | None = None,
    start_from: str | Path | None = None,
    device: str | None = None,
) -> Run:
    """Train a recipe (a `.toml` file) or texts, which take a desk recipe sized to them."""
    if steps is not None and minutes is not None:
        raise RequestError("--steps and --minutes contradict each other: give one")
    if minutes is not None and not 0 < minutes < float("inf"):
        raise RequestError(f"--minutes {minutes}: must be a number above 0, and not without end")
    overrides = [*set, *([f"train.steps={steps}"] if steps is not None else [])]
    with Interruption() as interruption:
        weights = _weights_of(start_from) if start_from is not None else None
        request = _request_of(what, overrides, weights)
        chosen = devices.choose(device)
        if minutes is None:
            plan = settle(request.recipe(None), say, tokens=request.tokens)
        else:
            plan = _plan_for_minutes(request, minutes, chosen, interruption)
        interruption.check()
        folder = claim(Path(run) if run is not None else None, request.stem)
        with folder.held():
            if folder.recipe_file.exists():
                raise BusyError(f"{folder.path} was begun by another process just now")
            folder.begin(recipes.to_toml(plan.recipe, plan.model.Config), plan.tokens)
            _fit(folder, plan, chosen, interruption, weights=weights)
            _final_figure(folder)
    return folder


def resume(path: str | Path, *, steps: int | None = None, device: str | None = None) -> Run:
    """Go on with a run, to the bit; `steps` makes it longer."""
    run = Run.existing(path)
    with Interruption() as interruption, run.held():
        chosen, tokens = devices.choose(device), run.tokens
        _sweep(run)
        for sentence in run.damage():
            say(sentence)
        saved, damaged = resuming.newest_good(run, say)
        log = MetricsLog(run.metrics_file)
        if saved is not None:
            resuming.require_same(run, saved, chosen, say)
            for bad in damaged:
                log({"event": "fallen_back", "at": saved.record["step"], "from": bad})
        elif run.recipe.train.initial:
            raise RequestError(f"{path} lost the weights it started from: train it anew with --from")
        done = saved.record["step"] if saved else 0
        if steps is not None and steps != run.recipe.train.steps:
            if steps <= done:
                raise RequestError(f"--steps {steps}: {path} has {done} steps already")
            log({"event": "rescheduled", "at": done, "steps": steps})
            log.flush(to_disk=True)
            longer = run.recipe.replace("train", steps=steps)
            run.write_recipe(recipes.to_toml(longer, configure(longer.model, tokens.vocabulary)[0].Config))
        if saved is not None and resuming.is_finished(run, saved):
            say(f"{path} is finished: {counted(done, 'step')}; headcount resume {path} --steps N trains longer")
            if not run.figures():  # it was killed between its last evaluation and its figure
                _final_figure(run)
            return run
        _fit(run, settle(run.recipe, say, tokens=tokens), chosen, interruption, saved=saved)
        _final_figure(run)
    return run


def _final_figure(run: Run) -> None:
    """Keep the figure of the best checkpoint as it was measured during training."""
    best = run.best()
    event = next((e for e in run.events() if e["event"] == "evaluated" and e["step"] == best), None)
    if event is None:
        return
    lm = load.load(run.path, device="cpu")
    measured = Measurement(event["nats"], event["bytes"], event["sha256"], event["protocol"], event["tokens"])
    command = ["headcount", "evaluate", str(run.path), "--split", "valid"]
    if run.recipe.evaluate.limit is not None:
        command += ["--limit", str(run.recipe.evaluate.limit)]
    name, split, text = lm.source(None, "valid")
    given = text[: run.recipe.evaluate.limit]
    lm.keep_figure(measured, name, split, [*command, "--checkpoint", str(best)], given)


@dataclass(frozen=True)
class Request:
    """What is to be trained: a recipe, or texts, for which one is made by size."""

    stem: str
    """What the run is called after."""
    recipe: Callable[[sizing.Size | None], Recipe]
    text: int | None
    """Bytes of texts that came without a recipe."""
    tokens: Tokens | None
    """Those of the weights that it starts from."""


def _plan_for_minutes(request: Request, minutes: float, device: Device, interruption: Interruption) -> Plan:
    """The plan for a budget: of a text also its size, chosen once by the table and once by the speed measured here."""
    text = request.text
    size = sizing.choose(minutes, text) if text else None
    plan = settle(request.recipe(size), say, minutes=True, tokens=request.tokens)
    interruption.check()
    say(f"timing steps to fit {minutes:g} minutes")
    timing = calibrate.time_steps(plan, device, interruption)
    if text and size and sizing.is_of(plan.recipe, size):
        slowness = timing.step / plan.tokens_per_step / size.seconds_per_byte
        better = sizing.choose(minutes, text, slowness)
        if better != size:
            size, plan = better, settle(request.recipe(better), say, minutes=True, tokens=request.tokens)
            timing = calibrate.time_steps(plan, device, interruption)
            slowness = timing.step / plan.tokens_per_step / size.seconds_per_byte
        read = timing.steps_in(minutes, plan) * plan.tokens_per_step
        say(sizing.said(size, minutes, text, slowness, read))
    return plan.with_steps(timing.steps_in(minutes, plan))


@dataclass(frozen=True)
class Weights:
    """What `--from` starts with."""

    kind: str
    config: Any
    tensors: Mapping[str, Tensor]
    sha256: str
    tokens: Tokens


def _weights_of(path: str | Path) -> Weights:
    saved = load.read_model(Path(path))
    return Weights(saved.kind, saved.model.config, saved.model.state_dict(), saved.facts["sha256"], saved.tokens)


def _request_of(what: Sequence[str | Path], overrides: Sequence[str], weights: Weights | None) -> Request:
    """The recipe of a `.toml` file, or one that is made for texts."""
    if not what:
        raise RequestError("name a recipe (.toml) or one or more texts")
    if len(what) > 1 and any(str(w).endswith(".toml") for w in what):
        raise RequestError("name one recipe, or texts, not both: --set corpus.path=… gives a recipe its text")
    if str(what[0]).endswith(".toml"):
        file = recipe_files.find(str(what[0]))
        recipe = _placed(recipes.read(file, overrides), weights)
        return Request(file.stem, lambda _: recipe, None, weights.tokens if weights else None)
    texts = [str(corpora.keep_piped(sys.stdin.buffer)) if str(w) == "-" else str(w) for w in what]
    length = len(corpora.map_file(corpora.gather(texts)))

    def sized(size: sizing.Size | None) -> Recipe:
        tables = sizing.recipe_for(length, size).to_dict()
        if weights is not None:
            tables["model"] = {"kind": weights.kind, **asdict(weights.config)}
            tables["tokens"] = kinds.table_of(weights.tokens)
        recipe = recipes.from_dict(tables, overrides)
        if recipe.corpus.path is None:
            recipe = recipe.replace("corpus", path=tuple(texts))
        return _placed(recipe, weights)

    stem = "text" if str(what[0]) == "-" else corpora.stem(str(what[0]))
    return Request(stem, sized, None if weights else length, weights.tokens if weights else None)


def _placed(recipe: Recipe, weights: Weights | None) -> Recipe:
    """The recipe with whole paths, and with the hash of the weights it starts from."""
    paths = tuple(str(Path(path).absolute()) for path in recipe.corpus.paths)
    for path in paths:
        if not path.isprintable() and "\udc80" <= max(path) <= "\udcff":
            raise RequestError(f"{path!a}: a recipe is UTF-8 and cannot hold this name; rename the file")
    recipe = recipe.replace("corpus", path=(paths[0] if len(paths) == 1 else paths) or None)
    return _starting_from(recipe, weights)


def _starting_from(recipe: Recipe, weights: Weights | None) -> Recipe:
    """The recipe with the hash of the weights it starts from; they must fit its model."""
    if weights is None:
        if recipe.train.initial is not None:
            raise RequestError(
                f"this recipe starts from weights {recipe.train.initial[:12]}: name their run with --from"
            )
        return recipe
    for key, value in kinds.table_of(weights.tokens).items():
        if getattr(recipe.tokens, key) != value:
            raise RequestError(f"tokens.{key} = {getattr(recipe.tokens, key)!r}: the weights of --from read {value!r}")
    _, config = configure(recipe.model, weights.tokens.vocabulary)
    changed = resuming.differences(
        {"model": {"kind": recipe.model["kind"], **asdict(config)}},
        {"model": {"kind": weights.kind, **asdict(weights.config)}},
    )
    # How weights were drawn and what is dropped while training may change; what they are the weights of may not.
    changed = [line for line in changed if not line.startswith(("model.init ", "model.dropout ", "model.recompute "))]
    if changed:
        raise RequestError(f"the weights of --from belong to another model: {'; '.join(changed)}")
    return recipe.replace("train", initial=weights.sha256)


def _sweep(run: Run) -> None:
    """Remove what a killed process left behind."""
    durable.sweep(run.path)
    durable.sweep(run.checkpoints)


def _fit(
    run: Run,
    plan: Plan,
    device: Device,
    interruption: Interruption,
    *,
    saved: Checkpoint | None = None,
    weights: Weights | None = None,
) -> None:
    """Train in a run folder whose lock is held."""
    _sweep(run)
    recipe = plan.recipe
    with device.own_generators(), ConsoleSink(recipe.train.steps or 0) as console:
        board = tensorboard.sink_for(run.path / "tensorboard", saved.record["step"] if saved else 0, console.say)
        trainer = Trainer(run, plan, device, [console, *([board] if board else [])], interruption)
        console.say(
            f"{run.path}: {recipe.model['kind']}, {count_parameters(trainer.learner.model):,} parameters, {device}"
        )
        console.say(
            f"{plan.corpus.name}, {plan.corpus.ends[0]:,} bytes to learn from, "
            f"{counted(recipe.train.steps or 0, 'step')} of {recipe.batches.streams} × {recipe.batches.segment}"
        )
        if saved is None:
            trainer.begin(weights.tensors if weights else None)
        else:
            trainer.restore(saved)
            console.say(f"going on from step {trainer.step:,}")
        trainer.fit()

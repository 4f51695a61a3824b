"""From a recipe to a run that can begin: everything open is settled, and what cannot work is refused, before step 0.

The plan's recipe is complete: the corpus's hash, every default of the model, the number of steps. From then on the run
is a function of (recipe, step).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headcount.errors import RequestError
from headcount.measure import protocols
from headcount.models import configure
from headcount.models.contract import Model, count_parameters, undrawn
from headcount.recipe import Recipe
from headcount.text import corpora
from headcount.text import tokens as kinds
from headcount.text.batches import Segments, Windows
from headcount.text.corpora import Corpus
from headcount.text.encoding import Encoded, encode
from headcount.text.tokens import Tokens

Say = Callable[[str], None]
EVALUATIONS = 10
"""How often a run is evaluated if the recipe does not say."""


@dataclass(frozen=True)
class Plan:
    """A recipe with nothing left open, and what it names."""

    recipe: Recipe
    corpus: Corpus
    tokens: Tokens
    model: type[Model]
    config: Any

    def batches(self) -> Segments | Windows:
        """What every step reads."""
        text, table = encode(self.corpus.split("train"), self.tokens), self.recipe.batches
        seed, lookahead = self.recipe.seed, self.model.lookahead
        if table.kind == "windows":
            return Windows(text, table, seed=seed, lookahead=lookahead)
        return Segments(text, table, seed=seed, lookahead=lookahead)

    @property
    def tokens_per_step(self) -> int:
        """Predictions of a step in the middle of an epoch."""
        return self.recipe.batches.streams * self.recipe.batches.segment

    @functools.cached_property
    def held_out(self) -> Encoded:
        """What is read by an evaluation during training."""
        return encode(self.corpus.split("valid")[: self.recipe.evaluate.limit], self.tokens)

    def with_steps(self, steps: int) -> Plan:
        """The same plan for a number of steps, with evaluations and checkpoints spread over them."""
        train = self.recipe.train
        evaluate_every = train.evaluate_every or max(1, -(-steps // EVALUATIONS))
        recipe = self.recipe.replace(
            "train",
            steps=steps,
            epochs=None,
            evaluate_every=evaluate_every,
            save_every=train.save_every or evaluate_every,
        )
        return dataclasses.replace(self, recipe=recipe)


def settle(recipe: Recipe, say: Say, *, minutes: bool = False, tokens: Tokens | None = None) -> Plan:
    """The plan of a recipe; with `minutes` the number of steps stays open until they are timed.

    `tokens` are the ones that a run has; a new run's are learnt from its training split.
    """
    protocols.find(recipe.evaluate.protocol)
    if recipe.train.steps is None and recipe.train.epochs is None and not minutes:
        raise RequestError("train.steps is missing: give train.steps or train.epochs, --steps or --minutes")
    tokens = tokens or kinds.fixed(recipe.tokens)
    if tokens is not None:  # what cannot work is refused before a corpus is fetched
        _fit_model(recipe, tokens)
    corpus = corpora.open_corpus(recipe.corpus)
    if (lacks := corpus.lacks()) is not None:
        raise RequestError(lacks)
    tokens = tokens or kinds.find(recipe.tokens, corpus.split("train"))
    if recipe.tokens.sha256 not in (None, tokens.sha256):
        raise RequestError(f"tokens.sha256 = {recipe.tokens.sha256}: the {tokens.kind} of this corpus are others")
    model, config = _fit_model(recipe, tokens)
    if getattr(config, "cutoffs", ()) and tokens.kind != "words":
        say(f"model.cutoffs are for frequent symbols first: {tokens.kind} are not in the order of their frequency")
    recipe = recipe.replace("corpus", sha256=corpus.sha256, split=corpus.shares)
    recipe = recipe.replace("tokens", sha256=tokens.sha256)
    recipe = recipe.replace("model", **dataclasses.asdict(config))
    size = len(encode(corpus.split("train"), tokens).ids)
    if size <= model.lookahead:
        raise RequestError(f"{size} tokens of training text are too few: tokens.kind = {tokens.kind!r} finds no more")
    recipe = _fit_batches(recipe, size, say)
    plan = Plan(recipe, corpus, tokens, model, config)
    with undrawn():
        shadow = model(config)
    protocols.require(shadow, len(plan.held_out.ids), recipe.evaluate, split="valid")
    longest = shadow.longest_segment()
    if longest is not None and recipe.batches.segment > longest:
        raise RequestError(f"batches.segment = {recipe.batches.segment}: must be at most {longest}, the model.window")
    if recipe.batches.kind == "windows" and recipe.batches.segment > (shadow.restarts_after or math.inf):
        raise RequestError(
            f"batches.segment = {recipe.batches.segment}: the model begins anew after {shadow.restarts_after}, which "
            "is the longest window"
        )
    if minutes:
        return plan
    try:
        return plan.with_steps(recipe.train.steps or plan.batches().steps_in(recipe.train.epochs or 0))
    except ValueError as error:
        raise RequestError(f"train.epochs = {recipe.train.epochs}: {error}") from None


def _fit_model(recipe: Recipe, tokens: Tokens) -> tuple[type[Model], Any]:
    """The model for these tokens and its Config, if they fit, and fit into this machine's memory."""
    model, config = configure(recipe.model, tokens.vocabulary)
    if config.vocabulary != tokens.vocabulary:
        raise RequestError(
            f"model.vocabulary = {config.vocabulary}: tokens of kind {tokens.kind!r} are {tokens.vocabulary}"
        )
    _require_memory(model, config)
    return model, config


def _fit_batches(recipe: Recipe, size: int, say: Say) -> Recipe:
    """Lower `streams` until each has a segment to read."""
    batches = recipe.batches
    streams = min(batches.streams, max(1, size // batches.segment))
    if streams == batches.streams:
        return recipe
    say(f"{size:,} tokens of training text are too few for {batches.streams} streams: taking {streams}")
    return recipe.replace("batches", streams=streams, accumulate=min(batches.accumulate, streams))


def _require_memory(model: type[Model], config: Any) -> None:
    """Refuse a model that cannot be trained in this machine's memory, without allocating it."""
    with undrawn():
        parameters = count_parameters(model(config))
    needed = parameters * 4 * 4  # float32 weights, gradients and two moments
    if not hasattr(os, "sysconf"):  # Windows does not tell
        return
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise RequestError(
            f"[model] has {parameters:,} parameters: training them takes {needed / 2**30:,.0f} GiB, and this "
            f"machine has {there / 2**30:,.0f}; lower model.width or model.blocks"
        )

"""What a recipe, a run or a packed file describes, counted on the meta device: no weight is allocated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount.learn import checkpoint
from headcount.learn.run import Run
from headcount.models import configure
from headcount.models.contract import Part, undrawn
from headcount.recipe import Recipe, read
from headcount.text.tokens import expected_vocabulary, fixed
from headcount.use import pack, recipe_files


def describe(what: str) -> dict[str, Any]:
    """Facts by name; `published` holds what a paper printed."""
    if what.endswith(".toml"):
        return _of_recipe(read(recipe_files.find(what)))
    if Path(what).is_file():
        header = pack.read_header(Path(what))
        table = {"kind": header["kind"], **header["config"]}
        return {"packed": what, **header["facts"], **_of_model(table, header["config"]["vocabulary"], 1)}
    run = Run.existing(what)
    steps = checkpoint.steps_in(run.checkpoints)
    facts: dict[str, Any] = {
        "run": what,
        "checkpoints": ", ".join(map(str, steps)) or "none yet",
        "best": run.best(),
        "steps": run.recipe.train.steps,
    }
    return {**facts, **_of_recipe(run.recipe)}


def outline_of(run: Run) -> tuple[Part, ...]:
    """The layers of a run's model."""
    cls, config = configure(run.recipe.model, expected_vocabulary(run.recipe.tokens))
    with undrawn():
        return cls(config).outline()


def unit_of(recipe: Recipe) -> str:
    """What its operations are counted per."""
    return "byte" if recipe.tokens.kind == "bytes" else "token"


def _of_recipe(recipe: Recipe) -> dict[str, Any]:
    """Counted with the vocabulary that was published, if one was: training uses the tokens' own."""
    published = vars(recipe.published) if recipe.published else {}
    vocabulary = published.get("vocabulary") or expected_vocabulary(recipe.tokens)
    facts = _of_model(recipe.model, vocabulary, recipe.batches.segment, unit_of(recipe))
    own = fixed(recipe.tokens)
    if own is not None and own.vocabulary != vocabulary:
        here = _of_model(recipe.model, own.vocabulary, recipe.batches.segment)
        facts["trained_here"] = {"vocabulary": own.vocabulary, "parameters": here["parameters"]["in training"]}
    if recipe.published:
        facts["published"] = {key: value for key, value in published.items() if value is not None}
    return facts


def _of_model(table: Any, vocabulary: int, segment: int, unit: str = "byte") -> dict[str, Any]:
    cls, config = configure(table, vocabulary)
    with undrawn():
        spec = cls(config).spec(segment)
    return {
        "model": table["kind"],
        "vocabulary": config.vocabulary,
        "parameters": {"in training": spec.parameters, "in use": spec.parameters_in_use},
        "heads": spec.heads,
        "receptive_field": "unbounded" if spec.receptive_field is None else spec.receptive_field,
        "state_bytes_per_stream": spec.state_bytes,
        f"flops_per_{unit}": {"forward": spec.flops, "of which recurrent": spec.recurrent_flops, "segment": segment},
    }

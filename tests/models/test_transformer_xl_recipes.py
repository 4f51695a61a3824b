"""The published Transformer-XLs: every number of the five recipes against the papers' and the scripts'."""

import pytest

from headcount.recipe import read
from headcount.use import recipe_files
from headcount.use.describe import describe

MODEL = ("layers", "width", "heads", "head_width", "inner", "dropout", "attention_dropout")
EVALUATED = ("segment", "window", "clamp")
LARGE = (24, 1024, 8, 128, 3072, 0.15, 0.15)
RECIPES = {
    # the model; warm-up, steps, streams, segment and memory in training; segment, window and clamp of the figure
    "enwik8_12l": ((12, 512, 8, 64, 2048, 0.1, 0.0), (0, 400_000, 22, 512, 512), (80, 2100, 820)),
    "enwik8_24l": (LARGE, (4_000, 400_000, 64, 768, 768), (128, 3800, 1000)),
    "text8_24l": (LARGE, (0, 400_000, 64, 768, 768), (128, 3800, 1000)),
    "wikitext103_standard": ((16, 410, 10, 41, 2100, 0.1, 0.0), (0, 200_000, 60, 150, 150), (64, 640, 400)),
    "wikitext103_large": ((18, 1024, 16, 64, 4096, 0.2, 0.2), (16_000, 4_000_000, 128, 384, 384), (128, 1600, 1000)),
}
COUNTED = {  # parameters, heads, and as many bytes as layers of segment and memory reach back
    "enwik8_12l": (41_055_436, 96, 13 * 512),
    "enwik8_24l": (277_231_820, 192, 25 * 768),
    "text8_24l": (277_050_395, 192, 25 * 768),
    "wikitext103_standard": (151_107_538, 160, 17 * 150),
    "wikitext103_large": (285_170_506, 288, 19 * 384),
}
PRINTED = {  # vocabulary, parameters, heads, valid, test
    "enwik8_12l": (204, "41M", 160, None, 1.06),
    "enwik8_24l": (204, "277M", None, None, 0.99),
    "text8_24l": (27, "277M", None, None, 1.08),
    "wikitext103_standard": (267_735, "151M", None, 23.1, 24.0),
    "wikitext103_large": (267_735, "257M; as released, with u and v per layer, 285,205,322", None, 17.7, 18.3),
}
TRAINED_HERE = {  # the stream without newlines has fewer symbols than the 256 that a byte may have
    "enwik8_12l": {"vocabulary": 256, "parameters": 41_055_436 + 52 * 513},
    "enwik8_24l": {"vocabulary": 256, "parameters": 277_231_820 + 52 * 1025},
}
WORDS = {"cutoffs": [20_000, 40_000, 200_000]}
VOCABULARY = {
    "wikitext103_standard": {**WORDS, "division": 1},
    "wikitext103_large": {**WORDS, "division": 4, "tied_projections": [False, True, True, True]},
}
STREAMS = {
    "enwik8": ("enwik8", "legacy-txl"),
    "text8": ("text8", "characters"),
    "wikitext103": ("wikitext-103", "words"),
}


def path(name):
    return f"recipes/paper/transformer_xl_{name}.toml"


def test_these_are_all():
    files = (recipe_files.folder() / "paper").glob("transformer_xl_*.toml")
    assert {f"recipes/paper/{file.name}" for file in files} == {path(name) for name in RECIPES}


@pytest.mark.parametrize("name", RECIPES)
def test_every_number_is_the_published_one(name):
    recipe = read(recipe_files.find(path(name)))
    model, trained, evaluated = RECIPES[name]
    assert tuple(recipe.model[key] for key in MODEL) == model
    found = (recipe.schedule.warmup_steps, recipe.train.steps, recipe.batches.streams, recipe.batches.segment)
    assert (*found, recipe.model["window"]) == trained
    assert recipe.evaluate.protocol == "dai2019"
    assert tuple(getattr(recipe.evaluate, key) for key in EVALUATED) == evaluated
    assert {key: recipe.model[key] for key in ("cutoffs", "division", "tied_projections") if key in recipe.model} == (
        VOCABULARY.get(name, {})
    )
    settings = ("window_rule", "memory_start", "norm", "shared_biases", "init_std")
    assert [recipe.model[key] for key in settings] == ["memory", "empty", "post", True, 0.02]
    assert (recipe.corpus.name, recipe.tokens.kind) == STREAMS[name.split("_")[0]]
    optimiser, schedule = recipe.optimiser, recipe.schedule
    assert (optimiser.kind, optimiser.lr, optimiser.betas, optimiser.eps) == ("adamw", 2.5e-4, (0.9, 0.999), 1e-8)
    assert (optimiser.weight_decay, optimiser.clip) == (0.0, 0.25)
    assert (schedule.kind, schedule.begins, schedule.floor) == ("cosine", "at-step-0", 0.0)


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_counted_stands_beside_what_was_printed(name):
    facts = describe(path(name))
    parameters, heads, reach = COUNTED[name]
    assert facts["parameters"] == {"in training": parameters, "in use": parameters}
    assert (facts["heads"], facts["receptive_field"]) == (heads, reach)
    printed = facts["published"]
    assert facts.get("trained_here") == TRAINED_HERE.get(name)
    keys = ("vocabulary", "parameters", "heads", "valid", "test")
    assert tuple(printed.get(key) for key in keys) == PRINTED[name]
    segment, window, clamp = RECIPES[name][2]
    assert printed["protocol"].startswith(
        f"dai2019: 10 streams, segments of {segment}, window {window:,}, clamp {clamp:,}"
    )
    assert printed.get("unit") == ("perplexity per word, <eos> counted" if "wikitext" in name else None)

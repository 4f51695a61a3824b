"""What the paper leaves open and the Config decides: the scale of the embedding, and how numbers begin."""

import itertools
from pathlib import Path

import pytest
import torch

from headcount.models import configure
from headcount.models.contract import undrawn
from headcount.recipe import read
from tests.models.test_char_transformer import build, draw

COUNTS = {"t12": (44_232_704, 41_212_160), "t64": (235_339_776, 218_661_120)}


@pytest.mark.parametrize("rows", [4, 9])
def test_the_embedding_may_be_scaled(rows):
    """The same numbers as an unscaled one whose table is √D times as large."""
    scaled, plain = build(embedding_scaled=True), build()
    plain.load_state_dict(scaled.state_dict())
    with torch.no_grad():
        plain.embedding.weight.mul_(12**0.5)
        tokens = draw(9)
        assert (scaled(tokens, scaled.start(2))[0] - plain(tokens, plain.start(2))[0]).abs().max() < 1e-12
        tails = (model.tail(tokens, model.start(2), rows) for model in (scaled, plain))
        assert (next(tails) - next(tails)).abs().max() < 1e-12
    assert scaled.objective(draw(11), scaled.start(2), 0.0)[0].total.item() == pytest.approx(
        plain.objective(draw(11), plain.start(2), 0.0)[0].total.item(), abs=1e-12
    )


@pytest.mark.parametrize(("settings", "std"), [({}, 64**-0.5), ({"init_std": 0.02}, 0.02)])
def test_tables_and_classifiers_begin_with_the_deviation_that_is_asked_for(settings, std):
    model = build(width=64, vocabulary=256, context=64, **settings)
    tables = [model.embedding.weight, model.head.weight, *(layer.positions for layer in model.layers)]
    for table in (*tables, *(classifier.weight for classifier in model.auxiliary.values())):
        assert table.std().item() == pytest.approx(std, rel=0.05) and abs(table.mean().item()) < 0.05 * std


@pytest.mark.parametrize("scaled", [False, True])
def test_the_classifier_that_is_used_may_have_the_embeddings_table(scaled):
    """The same numbers as two tables that are equal; what it learns is what both would; one parameter less."""
    tied, plain = build(tied=True, embedding_scaled=scaled), build(embedding_scaled=scaled)
    plain.load_state_dict({**tied.state_dict(), "embedding.weight": tied.head.weight})
    assert "embedding.weight" not in tied.state_dict() and tied.spec().parameters < plain.spec().parameters
    losses = [model.objective(draw(11), model.start(2), 0.0)[0].total for model in (tied, plain)]
    assert abs(losses[0] - losses[1]).item() < 1e-12
    for loss in losses:
        loss.backward()
    both = plain.embedding.weight.grad + plain.head.weight.grad
    assert (tied.head.weight.grad - both).abs().max() < 1e-12
    finished, tokens = tied.finished(), draw(9)
    assert finished(tokens, finished.start(2))[0].equal(tied(tokens, tied.start(2))[0])


@pytest.mark.parametrize("name", ["t12", "t64"])
def test_the_published_counts_do_not_tell(name):
    """Rounded to millions they are the same with biases and without, with one table and with two."""
    recipe, published = read(Path(f"recipes/paper/char_transformer_{name}.toml")), {"t12": (44, 41), "t64": (235, 219)}
    for biases, tied in itertools.product((False, True), repeat=2):
        model, config = configure({**recipe.model, "attention_biases": biases, "tied": tied}, 256)
        with undrawn():
            spec = model(config).spec()
        more = biases * config.layers * 4 * 512 - tied * 256 * 512
        counts = spec.parameters, spec.parameters_in_use
        assert counts == tuple(count + more for count in COUNTS[name])
        assert tuple(round(count / 1e6) for count in counts) == published[name]

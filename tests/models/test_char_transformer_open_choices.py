"""What the paper leaves open and the Config decides: the scale of the embedding, and how numbers begin."""

import pytest
import torch

from tests.models.test_char_transformer import build, draw


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

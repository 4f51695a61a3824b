"""Where dropout falls in a Transformer-XL, by numbers: masks that keep everything leave only their factor behind."""

import pytest
import torch

from headcount.exchange.legacy import load_transformer_xl
from tests.exchange.test_legacy_transformer_xl import PLAIN, worst
from tests.models.plain_transformer_xl import Plain, random_weights


@pytest.fixture
def nothing_is_zeroed(monkeypatch):
    """Dropout of p is then a factor of 1/(1 - p), wherever it falls."""
    for owner in ("dropout", "relative"):
        monkeypatch.setattr(
            f"headcount.layers.{owner}.draw_kept", lambda shape, p, device=None: torch.ones(shape, dtype=torch.uint8)
        )


@pytest.mark.parametrize("pre", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize(("p", "of_weights"), [(0.5, 0.0), (0.0, 0.75), (0.5, 0.75)])
def test_dropout_falls_on_seven_places(pre, p, of_weights, nothing_is_zeroed):
    config = {**PLAIN, "pre_lnorm": pre, "dropout": p, "dropatt": of_weights}
    weights = random_weights(config)
    model = load_transformer_xl(weights, config).train()
    marked = Plain(weights, config, dropped=1 / (1 - p), weights_dropped=1 / (1 - of_weights))
    assert worst(model, marked, gradients=True) < 1e-9
    assert worst(model.eval(), marked, gradients=True) > 1e-3
    assert worst(model, Plain(weights, config), gradients=True) < 1e-9

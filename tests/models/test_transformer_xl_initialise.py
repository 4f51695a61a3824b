"""How the weights of a Transformer-XL are drawn, by the kind of its positions."""

import pytest
import torch

from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("positions", ["relative", "shaw", "sinusoid", "learned"])
def test_biases_of_scores_are_zero_and_u_and_v_are_drawn(positions, shared):
    if positions != "relative" and not shared:
        return  # refused
    torch.manual_seed(0)
    sizes = {"width": 128, "layers": 2, "init_std": 0.05, "final_norm": True}
    model = TransformerXL(TransformerXLConfig(**sizes, positions=positions, shared_biases=shared))
    for name, parameter in model.named_parameters():
        drawn = not name.endswith("bias") or name.endswith(("content_bias", "distance_bias"))
        mean = 1.0 if name.endswith("norm.weight") else 0.0
        assert abs(parameter.mean() - mean) < (0.02 if drawn else 1e-12), name
        assert abs(parameter.std() - (0.05 if drawn else 0.0)) < (0.01 if drawn else 1e-12), name
    assert ("layers.1.attention.table_bias" in dict(model.named_parameters())) == (positions == "shaw")

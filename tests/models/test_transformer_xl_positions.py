"""The sinusoid of a Transformer-XL: as precise as the model is, and never less than float32."""

import numpy as np
import pytest
import torch

from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig

SMALL = {"width": 8, "layers": 1, "heads": 2, "inner": 8, "window": 6}
EXACT = 10_000.0 ** -(np.arange(0, 8, 2) / 8)


def waves_of(model):
    """What the layers are given for distances up to 3,800."""
    given = []
    project = model.layers[0].attention.project
    model.layers[0].attention.project = lambda distances, waves: given.append(waves) or project(distances, waves)
    model(torch.zeros(1, 3_801, dtype=torch.long), model.start(1))
    return given[0].detach().flip(0)  # farthest first


@pytest.mark.parametrize(
    ("dtype", "computed", "bound"),
    [
        (torch.float64, torch.float64, 1e-12),
        (torch.float32, torch.float32, 1e-3),
        (torch.bfloat16, torch.float32, 1e-3),
    ],
)
def test_the_sinusoid_is_as_precise_as_the_model(dtype, computed, bound):
    waves = waves_of(TransformerXL(TransformerXLConfig(**SMALL)).to(dtype))
    angles = np.arange(3_801)[:, None] * EXACT
    assert waves.dtype == computed
    assert np.abs(waves.numpy() - np.concatenate([np.sin(angles), np.cos(angles)], axis=1)).max() < bound


def test_a_model_of_float32_has_the_frequencies_of_float32():
    waves = waves_of(TransformerXL(TransformerXLConfig(**SMALL)))
    angles = torch.arange(3_801.0)[:, None] * torch.tensor(EXACT).float()
    assert waves.equal(torch.cat([angles.sin(), angles.cos()], dim=1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saved_and_narrowed_frequencies_stay_what_they_were(dtype):
    model = TransformerXL(TransformerXLConfig(**SMALL)).bfloat16().to(dtype)
    assert np.array_equal(model.frequencies.numpy(), EXACT)
    again = TransformerXL.blank(model.config, dtype=dtype)
    again.load_state_dict(model.state_dict())
    assert again.frequencies.equal(model.frequencies)
    rounded = {**model.state_dict(), "frequencies": model.frequencies.float() * 2}  # as published, or as saved before
    again.load_state_dict(rounded)
    assert again.frequencies.equal(rounded["frequencies"].double())

"""A Transformer-XL of Hugging Face's own code, read under its names: the same log-probabilities, segment by segment.

Their last release with this model is 4.37.2, which the project does not depend on. To run this file, in a copy of the
environment: pip install transformers==4.37.2
"""

import warnings

import pytest
import torch

from headcount.exchange.legacy import load_transformer_xl

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # an old release, under a newer torch
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, "TransfoXLLMHeadModel"):
        pytest.skip("these transformers have no Transformer-XL: 4.37.2 has", allow_module_level=True)

PLAIN = {
    "vocab_size": 30,
    "cutoffs": [],
    "d_model": 8,
    "d_embed": 8,
    "n_head": 2,
    "d_head": 3,
    "d_inner": 12,
    "div_val": 1,
    "n_layer": 3,
    "mem_len": 6,
    "clamp_len": -1,
    "same_length": True,
    "tie_projs": [False],
    "pad_token_id": 0,
    "eos_token_id": 0,
}
BANDS = {**PLAIN, "cutoffs": [7, 19], "tie_projs": [False, True, True]}
CONFIGS = {
    "plain": PLAIN,
    "not the same length": {**PLAIN, "same_length": False},
    "clamp": {**PLAIN, "clamp_len": 4},
    "pre-norm": {**PLAIN, "pre_lnorm": True},
    "shared biases": {**PLAIN, "untie_r": False},
    "adaptive": BANDS,
    "adaptive, other width": {**BANDS, "d_embed": 6},
    "divided": {**BANDS, "d_embed": 16, "div_val": 2},
    "divided, clamp, nothing tied": {**BANDS, "div_val": 2, "clamp_len": 4, "tie_projs": [False] * 3},
}
LENGTHS = (3, 1, 7, 2, 5, 1, 9)


def theirs(keys):
    """Their model with drawn weights, and its config as a config.json has it."""
    torch.manual_seed(0)
    config = transformers.TransfoXLConfig(**keys)
    model = transformers.TransfoXLLMHeadModel(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4)
    return model, config.to_dict()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_log_probabilities(name, gradients, monkeypatch):
    model, config = theirs(CONFIGS[name])
    ours = load_transformer_xl(model.state_dict(), config)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in model.parameters())
    # They mask scores in float32, where the mask of float64 overflows: a float64 model of theirs runs only without.
    monkeypatch.setattr(torch.Tensor, "float", lambda tensor: tensor)
    tokens = torch.randint(0, 30, (2, sum(LENGTHS)), generator=torch.Generator().manual_seed(1))
    state, memory, begin = ours.start(2), None, 0
    for length in LENGTHS:
        part = tokens[:, begin : begin + length]
        with torch.no_grad():
            out = model(part, mems=memory)
        with torch.set_grad_enabled(gradients):
            hidden, state = ours(part, state)
            found = ours.head.log_probs(hidden)
        expected, memory = out.prediction_scores, out.mems
        assert expected.dtype == torch.float64 and expected.exp().sum(-1).sub(1).abs().max() < 1e-12
        assert (found - expected).abs().max() <= 1e-9
        begin += length

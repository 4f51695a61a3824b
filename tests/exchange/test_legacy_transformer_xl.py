"""A Transformer-XL under its published names: the numbers of the equations, over ragged segments, in every form."""

import pytest
import torch

from headcount.errors import RequestError
from headcount.exchange.legacy import load_transformer_xl
from headcount.models.contract import count_parameters
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from tests.models.plain_transformer_xl import Plain, random_weights

PLAIN = {
    "vocab_size": 30,
    "cutoffs": [],
    "d_model": 8,
    "d_embed": 8,
    "n_head": 2,
    "d_head": 3,
    "d_inner": 12,
    "div_val": 1,
    "pre_lnorm": False,
    "n_layer": 2,
    "mem_len": 6,
    "clamp_len": 4,
    "same_length": True,
    "layer_norm_epsilon": 1e-5,
    "adaptive": True,
    "a key nobody knows": 1,
}
CONFIGS = {
    "plain": PLAIN,
    "no clamp, not the same length": {**PLAIN, "clamp_len": -1, "same_length": False},
    "clamp 1": {**PLAIN, "clamp_len": 1},
    "pre-norm": {**PLAIN, "pre_lnorm": True},
    "another epsilon": {**PLAIN, "layer_norm_epsilon": 0.1},
    "no memory": {**PLAIN, "mem_len": 0, "same_length": False},
    "adaptive": {**PLAIN, "cutoffs": [7, 19]},
    "adaptive, other width": {**PLAIN, "cutoffs": [7, 19], "d_embed": 6},
    "divided": {**PLAIN, "cutoffs": [7, 19], "d_embed": 16, "div_val": 2},
    "divided, pre-norm": {**PLAIN, "cutoffs": [7], "div_val": 2, "pre_lnorm": True, "same_length": False},
}
OWN_PROJECTIONS = {
    # The table, its biases, two cluster rows and theirs, one projection in, band 0's own out: the others are tied.
    "adaptive, other width": 30 * 6 + 30 + 2 * 6 + 2 + 8 * 6 + 8 * 6,
    "divided": 7 * 16 + 12 * 8 + 11 * 4 + 30 + 2 * 16 + 2 + 8 * (16 + 8 + 4) + 8 * 16,
}
"""Numbers in the heads of those that project."""
LENGTHS = (3, 1, 7, 2, 5)
TIED = {2: (False, True), 3: (False, True, True)}


def tokens():
    return torch.randint(0, 30, (2, sum(LENGTHS)), generator=torch.Generator().manual_seed(1))


def tied_of(config):
    return TIED.get(len(config["cutoffs"]) + 1, (False,))


def worst(model, oracle, gradients):
    """The largest difference of log-probabilities over all segments."""
    state, memories, begin, found = model.start(2), oracle.start(2), 0, 0.0
    with torch.set_grad_enabled(gradients):
        for length in LENGTHS:
            part = tokens()[:, begin : begin + length]
            hidden, state = model(part, state)
            expected, memories = oracle.segment(part, memories)
            found = max(found, (model.head.log_probs(hidden) - expected).abs().max().item())
            nats = -expected.gather(-1, part[..., None])[..., 0]
            found = max(found, (model.head.nll(hidden, part) - nats).abs().max().item())
            begin += length
    return found


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_hugging_faces_names(name, shared, gradients):
    config = CONFIGS[name]
    weights = random_weights(config, shared=shared, tied=tied_of(config))
    model = load_transformer_xl(weights, config)
    assert model.config.shared_biases == shared and model.config.memory_start == "zeros"
    if name in OWN_PROJECTIONS:
        assert model.config.tied_projections == tied_of(config)
        assert count_parameters(model.head) == OWN_PROJECTIONS[name]
    assert worst(model, Plain(weights, config), gradients) < 1e-9


@pytest.mark.parametrize("name", CONFIGS)
def test_the_original_names(name):
    config = CONFIGS[name]
    weights = random_weights(config, shared=True, tied=tied_of(config), prefix="")
    original = {key: value for key, value in config.items() if key != "vocab_size"}
    model = load_transformer_xl(weights, {**original, "n_token": 30})
    assert model.config.memory_start == "empty" and model.config.vocabulary == 30
    assert worst(model, Plain(weights, config, original=True), False) < 1e-9
    if len(config["cutoffs"]) > 1:  # their rows stand in reverse
        assert worst(model, Plain(weights, config), False) > 1e-3


def test_gradients_agree():
    config = CONFIGS["divided"]
    weights = {k: v.requires_grad_() for k, v in random_weights(config, tied=(False, True, True)).items()}
    model = load_transformer_xl({k: v.detach() for k, v in weights.items()}, config)
    oracle, state, begin = Plain(weights, config), model.start(2), 0
    memories = oracle.start(2)
    for length in LENGTHS:
        part = tokens()[:, begin : begin + length]
        hidden, state = model(part, state)
        expected, memories = oracle.segment(part, memories)
        memories = [memory.detach() for memory in memories]
        model.head.nll(hidden, part).sum().backward()
        (-expected.gather(-1, part[..., None])).sum().backward()
        begin += length
    for n in range(2):
        name = f"transformer.layers.{n}.dec_attn."
        attention = model.layers[n].attention
        qkv = torch.cat([attention.query.weight.grad, attention.key_value.weight.grad])
        assert (qkv - weights[f"{name}qkv_net.weight"].grad).abs().max() < 1e-8
        assert (attention.distance.weight.grad - weights[f"{name}r_net.weight"].grad).abs().max() < 1e-8
        assert (attention.content_bias.grad - weights[f"{name}r_w_bias"].grad).abs().max() < 1e-8
        assert (attention.distance_bias.grad - weights[f"{name}r_r_bias"].grad).abs().max() < 1e-8


def test_a_loaded_frequency_is_used_as_given():
    weights = random_weights(PLAIN, shared=True)
    weights["transformer.pos_emb.inv_freq"] *= 1.7
    assert worst(load_transformer_xl(weights, PLAIN), Plain(weights, PLAIN), False) < 1e-9
    exact = weights.pop("transformer.pos_emb.inv_freq") / 1.7
    assert (load_transformer_xl(weights, PLAIN).frequencies - exact).abs().max() < 1e-15


def config_of(keys, monkeypatch):
    """What such a config.json becomes, without the weights that would have to go with it."""
    asked = []

    def blank(config, **rest):
        asked.append(config)
        raise RequestError("as far as this")

    monkeypatch.setattr(TransformerXL, "blank", blank)
    with pytest.raises(RequestError, match="as far as this"):
        load_transformer_xl({"transformer.r_w_bias": torch.zeros(1)}, keys)
    return asked[0]


def test_absent_keys_have_hugging_faces_defaults(monkeypatch):
    assert config_of({}, monkeypatch) == TransformerXLConfig(
        vocabulary=267_735,
        width=1_024,
        layers=18,
        heads=16,
        head_width=64,
        inner=4_096,
        window=1_600,
        window_rule="exact",
        memory_start="zeros",
        norm="post",
        shared_biases=True,
        clamp=1_000,
        cutoffs=(20_000, 40_000, 200_000),
        division=4,
        embedding_width=1_024,
        tied_projections=(True, True, True, True),  # no tensor says otherwise
        dropout=0.1,
        attention_dropout=0.0,
        eps=1e-5,
    )


def test_given_keys_are_obeyed(monkeypatch):
    keys = {**PLAIN, "dropout": 0.3, "dropatt": 0.2, "layer_norm_epsilon": 1e-3, "d_embed": 4, "div_val": 2}
    assert config_of({**keys, "cutoffs": [7], "same_length": False}, monkeypatch) == TransformerXLConfig(
        vocabulary=30,
        width=8,
        layers=2,
        heads=2,
        head_width=3,
        inner=12,
        window=6,
        window_rule="memory",
        memory_start="zeros",
        clamp=4,
        cutoffs=(7,),
        division=2,
        embedding_width=4,
        tied_projections=(True, True),
        dropout=0.3,
        attention_dropout=0.2,
        eps=1e-3,
    )


def test_the_last_cutoff_may_be_the_vocabulary():
    for name in ("plain", "divided"):
        config, other = CONFIGS[name], {**CONFIGS[name], "cutoffs": [*CONFIGS[name]["cutoffs"], 30]}
        weights = random_weights(config, tied=tied_of(config))
        model = load_transformer_xl(weights, other)
        assert model.config == load_transformer_xl(weights, config).config
        assert worst(model, Plain(weights, config), False) < 1e-9


def test_which_projections_are_tied_is_read_from_the_tensors():
    config = CONFIGS["divided"]
    weights = random_weights(config, tied=(False, True, True))
    assert load_transformer_xl(weights, config).config.tied_projections == (False, True, True)
    del weights["crit.out_projs.1"]
    assert load_transformer_xl(weights, config).config.tied_projections == (False, True, True)

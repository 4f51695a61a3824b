"""What is no Transformer-XL under its published names is refused with a sentence that names the key or the tensor."""

import re

import pytest
import torch

from headcount.errors import RequestError
from headcount.exchange.legacy import load_transformer_xl
from tests.exchange.test_legacy_transformer_xl import CONFIGS, PLAIN, tied_of
from tests.models.plain_transformer_xl import random_weights


def refusal(weights, config):
    with pytest.raises(RequestError) as refused:
        load_transformer_xl(weights, config)
    said = str(refused.value)
    assert "\n" not in said
    return said


WRONG_KEYS = [
    ("vocab_size", 1, "greater than or equal to 2"),
    ("vocab_size", 30.0, "integer"),
    ("n_token", "30", "integer"),
    ("cutoffs", None, "must have a value"),
    ("cutoffs", 7, "list"),
    ("cutoffs", [7, "19"], "integer"),
    ("d_model", 0, "greater than or equal to 2"),
    ("d_embed", None, "must have a value"),
    ("d_embed", 0, "greater than or equal to 1"),
    ("d_embed", 10**18, "less than or equal to"),
    ("n_head", 0, "greater than or equal to 1"),
    ("n_head", 2.0, "integer"),
    ("n_head", True, "integer"),
    ("d_head", 0, "greater than or equal to 1"),
    ("d_head", None, "must have a value"),
    ("d_head", 10**18, "less than or equal to"),
    ("d_inner", -1, "greater than or equal to 1"),
    ("div_val", 0, "greater than or equal to 1"),
    ("div_val", None, "must have a value"),
    ("div_val", 2.0, "integer"),
    ("n_layer", 0, "greater than or equal to 1"),
    ("mem_len", -1, "greater than or equal to 0"),
    ("mem_len", 0, "itself at least"),
    ("clamp_len", None, "must have a value"),
    ("clamp_len", "4", "integer"),
    ("same_length", None, "must have a value"),
    ("same_length", 1, "boolean"),
    ("pre_lnorm", "no", "boolean"),
    ("dropout", "a", "number"),
    ("dropout", -1, "greater than or equal to 0"),
    ("dropout", 1.0, "less than 1"),
    ("dropout", float("nan"), "finite"),
    ("dropatt", 1, "less than 1"),
    ("layer_norm_epsilon", None, "must have a value"),
    ("layer_norm_epsilon", 0, "greater than 0"),
    ("attn_type", 2, "only 0"),
    ("attn_type", None, "must have a value"),
]


@pytest.mark.parametrize(("key", "value", "said"), WRONG_KEYS, ids=lambda part: repr(part))
def test_a_key_that_cannot_be_is_refused_by_name(key, value, said):
    found = refusal(random_weights(PLAIN), {**PLAIN, key: value})
    assert found.startswith(f"config.{key} = {value!r}: ") and said in found


@pytest.mark.parametrize("cutoffs", [[5, 5], [0, 5], [5, 31], [-3]], ids=str)
def test_cutoffs_rise(cutoffs):
    assert re.search(r"config.*cutoffs.*must rise", refusal(random_weights(PLAIN), {**PLAIN, "cutoffs": cutoffs}))


def test_something_is_left_of_every_bands_vectors():
    config = {**PLAIN, "cutoffs": [7, 19], "div_val": 3}
    assert "config.div_val = 3: nothing is left of d_embed = 8" in refusal(random_weights(PLAIN), config)


def test_whole_numbers_may_stand_for_others():
    model = load_transformer_xl(random_weights(PLAIN), {**PLAIN, "dropout": 0, "dropatt": 0, "clamp_len": 0})
    assert model.config.dropout == model.config.attention_dropout == 0 and model.config.clamp is None


def test_no_weights_at_all_are_refused():
    assert "there are none" in refusal({}, PLAIN)


LAYER = "transformer.layers.1.dec_attn"
WRONG_TENSORS = {
    "a stranger": ({f"{LAYER}.k_net.weight": torch.zeros(1)}, "k_net.weight is not a tensor of the published"),
    "a second classifier": ({"crit.out_layers.0.weight": torch.zeros(30, 8)}, "are one"),
    "a second r_w_bias": ({f"{LAYER}.r_w_bias": torch.zeros(2, 3)}, "r_w_bias that all layers share"),
    "a flat r_w_bias": ({f"{LAYER}.r_w_bias": torch.zeros(6)}, "r_w_bias has the shape (6,); the config wants (2, 3)"),
    "a small o_net": ({f"{LAYER}.o_net.weight": torch.zeros(3, 3)}, "o_net.weight has the shape (3, 3)"),
    "a row too many": ({f"{LAYER}.qkv_net.weight": torch.zeros(19, 8)}, "qkv_net.weight has the shape (19, 8)"),
    "no values": ({f"{LAYER}.qkv_net.weight": torch.zeros(12, 8)}, "the config wants (18, 8)"),
    "other inputs": ({f"{LAYER}.qkv_net.weight": torch.zeros(18, 9)}, "qkv_net.weight has the shape (18, 9)"),
    "no dimension": ({f"{LAYER}.qkv_net.weight": torch.zeros(())}, "qkv_net.weight has the shape ()"),
    "a short classifier": (
        {"crit.out_layers.0.weight": torch.zeros(29, 8)},
        "0.weight has the shape (29, 8)",
    ),
    "too few frequencies": ({"transformer.pos_emb.inv_freq": torch.ones(3)}, "pos_emb.inv_freq has the shape (3,)"),
    "whole numbers": (
        {f"{LAYER}.o_net.weight": torch.zeros(8, 6, dtype=torch.int64)},
        "o_net.weight is not a tensor of",
    ),
    "a list": ({f"{LAYER}.o_net.weight": [[0.0]]}, "o_net.weight is not a tensor of floating-point numbers"),
}


@pytest.mark.parametrize("name", WRONG_TENSORS)
def test_a_tensor_that_cannot_be_is_refused_by_name(name):
    change, said = WRONG_TENSORS[name]
    assert said in refusal({**random_weights(PLAIN, shared=True), **change}, PLAIN)


def test_weights_of_whole_numbers_are_refused():
    weights = {name: tensor.to(torch.int8) for name, tensor in random_weights(PLAIN).items()}
    assert "is not a tensor of floating-point numbers" in refusal(weights, PLAIN)


@pytest.mark.parametrize(
    "name", ["layers.1.pos_ff.CoreNet.3.bias", "layers.0.dec_attn.qkv_net.weight", "r_w_bias", "r_r_bias"]
)
def test_a_missing_tensor_is_named(name):
    weights = random_weights(PLAIN, shared=True)
    del weights[f"transformer.{name}"]
    assert f"{name} is missing" in refusal(weights, PLAIN)


def test_a_layers_missing_bias_is_named():
    weights = random_weights(PLAIN)
    del weights[f"{LAYER}.r_r_bias"]
    assert "layers.1.dec_attn.r_r_bias is missing" in refusal(weights, PLAIN)


@pytest.mark.parametrize("name", ["crit.out_projs.0", "transformer.word_emb.emb_projs.1", "crit.cluster_weight"])
def test_tensors_of_bands_have_their_shapes(name):
    config = CONFIGS["divided"]
    weights = {**random_weights(config, tied=tied_of(config)), name: torch.zeros(2, 2)}
    assert f"{name.removeprefix('transformer.')} has the shape (2, 2)" in refusal(weights, config)


def test_a_config_that_asks_for_more_than_there_is_takes_no_memory():
    config = {**PLAIN, "d_model": 65_536, "d_embed": 65_536, "d_inner": 1_048_576, "n_layer": 100}
    assert "has the shape" in refusal(random_weights(PLAIN), config)


def test_copies_may_be_of_another_precision():
    config = CONFIGS["divided"]
    weights = random_weights(config, shared=True, tied=tied_of(config))
    weights = {name: tensor.float().double() for name, tensor in weights.items()}  # what either can hold
    for name in ("crit.out_layers.1.weight", "crit.out_projs.2", f"{LAYER}.r_w_bias"):
        weights[name] = weights[name].float()
    assert load_transformer_xl(weights, config).config.tied_projections == (False, True, True)

"""Published weights' names: the same numbers as the equations, and nothing unknown taken."""

import pytest
import torch

from headcount.errors import RequestError
from headcount.exchange.legacy import load_sha_rnn
from tests.models import plain_sha_rnn as plain


@pytest.mark.parametrize("attend", [(), (1,), (0, 1, 2)])
def test_agrees_with_the_equations_over_ragged_segments_and_a_trimmed_memory(attend):
    weights = plain.random_weights(attend=attend)
    window = 20
    model = load_sha_rnn(weights, window=window)
    assert model.config.window_rule == "segment" and model.config.attention == attend
    tokens = torch.randint(0, 30, (3, 70), generator=torch.Generator().manual_seed(1))
    state, oracle_state, begin = model.start(3), {}, 0
    for length in (7, 20, 1, 12, 3, 20, 7):  # a segment as long as the window keeps no old row
        part = tokens[:, begin : begin + length]
        hidden, state = model(part, state)
        expected, oracle_state = plain.forward(weights, part, oracle_state, window)
        assert (model.head.log_probs(hidden) - expected).abs().max() < 1e-10
        begin += length
    for i in attend:
        assert state.blocks[i].memory.rows.shape[1] == len(oracle_state[i][2]) == window


def test_dead_tensors_are_optional():
    assert load_sha_rnn(plain.random_weights(dead=False)).config.blocks == 3


def test_dead_tensors_do_not_count():
    live = load_sha_rnn(plain.random_weights(dead=False))
    dead = load_sha_rnn(plain.random_weights(dead=True))
    assert sum(p.numel() for p in live.parameters()) == sum(p.numel() for p in dead.parameters())


@pytest.mark.parametrize(
    "name", ["blocks.0.attn.k.weight", "rnn.weight", "blocks.1.ff.linear2.weight", "blocks.1.lnmid.gain"]
)
def test_a_stranger_is_refused_by_name(name):
    weights = plain.random_weights() | {name: torch.zeros(3)}
    with pytest.raises(RequestError, match=name):
        load_sha_rnn(weights)


@pytest.mark.parametrize("name", ["decoder.bias", "blocks.1.lnmem.bias", "blocks.2.rnn.bias_hh_l0", "encoder.weight"])
def test_a_missing_tensor_is_named(name):
    weights = plain.random_weights()
    del weights[name]
    with pytest.raises(RequestError, match=name):
        load_sha_rnn(weights)


def test_shapes_and_ties_are_checked():
    weights = plain.random_weights()
    with pytest.raises(RequestError, match=r"decoder\.weight"):
        load_sha_rnn(weights | {"decoder.weight": weights["encoder.weight"] + 1})
    with pytest.raises(RequestError, match="multiple"):
        load_sha_rnn(weights | {"blocks.0.ff.linear1.weight": torch.zeros(30, 12, dtype=torch.float64)})
    with pytest.raises(RequestError, match=r"blocks\.1\.attn\.qs has the shape"):
        load_sha_rnn(weights | {"blocks.1.attn.qs": torch.zeros(1, 1, 5, dtype=torch.float64)})
    with pytest.raises(RequestError, match="missing"):
        load_sha_rnn({})

"""The SHA-RNN against its equations, its published counts and its published initialisation."""

import math

import pytest
import torch

from headcount import layers
from headcount.exchange import legacy
from headcount.layers.dropout import draw_kept
from headcount.models.contract import count_parameters
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from tests.models import plain_sha_rnn as plain


def original_names(model):
    """Our weights under the published names, for the oracle."""
    ours = model.state_dict()
    named = {"encoder.weight": ours["head.weight"], "decoder.weight": ours["head.weight"]}
    named["decoder.bias"] = ours["head.bias"]
    for i in range(model.config.blocks):
        for theirs, name in {**legacy._SHA_RNN_BLOCK, **legacy._SHA_RNN_ATTENTION}.items():
            if f"blocks.{i}.{name}" in ours:
                named[f"blocks.{i}.{theirs}"] = ours[f"blocks.{i}.{name}"]
    return named


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("rule", ["exact", "segment"])
@pytest.mark.parametrize("attention", [(), (0,), (0, 1, 2)])
def test_forward_backward_and_state_agree_with_the_plain_twin(rule, attention, gradients):
    torch.manual_seed(3)
    config = ShaRnnConfig(vocabulary=20, width=10, blocks=3, attention=attention, window=9, window_rule=rule, boom=2)
    model = ShaRnn(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    tokens = torch.randint(0, 20, (2, 31))
    weights = original_names(model)
    if gradients:
        weights = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
        weights["decoder.weight"] = weights["encoder.weight"]
    state, plain_state, begin, ours, theirs = model.start(2), {}, 0, 0.0, 0.0
    with torch.set_grad_enabled(gradients):
        for length in (4, 9, 1, 7, 9):
            part, targets = tokens[:, begin : begin + length], tokens[:, begin + 1 : begin + length + 1]
            hidden, state = model(part, state)
            expected, plain_state = plain.forward(weights, part, plain_state, 9, rule)
            assert (model.head.log_probs(hidden) - expected).abs().max() < 1e-10
            ours = ours + model.head.nll(hidden, targets).sum()
            theirs = theirs - expected.gather(-1, targets[..., None]).sum()
            for i, (h, c, memory) in plain_state.items():
                assert (state.blocks[i].lstm.h - h).abs().max() < 1e-10
                assert (state.blocks[i].lstm.c - c).abs().max() < 1e-10
                if i in attention:
                    assert (state.blocks[i].memory.rows - memory.transpose(0, 1)).abs().max() < 1e-10
            begin += length
    if gradients:
        ours.backward()
        theirs.backward()
        expected = {name: t.grad for name, t in weights.items() if t.grad is not None}
        found = original_names_of_gradients(model)
        assert set(found) == set(expected)
        for name, gradient in expected.items():
            assert (found[name] - gradient.view_as(found[name])).abs().max() < 1e-8, name


def original_names_of_gradients(model):
    shadow = ShaRnn(model.config).double()
    with torch.no_grad():
        for mine, theirs in zip(shadow.parameters(), model.parameters(), strict=True):
            mine.copy_(theirs.grad)
    return original_names(shadow)


COUNTS = {(): (50_615_501, 50_615_501), (2,): (53_773_517, 51_674_317), (0, 1, 2, 3): (63_247_565, 54_850_765)}


@pytest.mark.parametrize("attention", COUNTS)
def test_published_sizes(attention):
    config = ShaRnnConfig(vocabulary=205, width=1024, blocks=4, attention=attention, window=5000)
    with torch.device("meta"):
        spec = ShaRnn(config).spec(1024)
    assert (spec.parameters, spec.parameters_in_use) == COUNTS[attention]


def test_collapse_is_recorded_and_drops_the_over_parameterisation():
    model = ShaRnn(ShaRnnConfig(width=8, attention=(1,)))
    collapsed = model.collapse()
    assert collapsed.config.collapsed and not model.config.collapsed
    assert count_parameters(model) - count_parameters(collapsed) == 2 * 8 * 8 + 2 * 8
    with pytest.raises(RuntimeError):
        model.load_state_dict(collapsed.state_dict())  # never silently wrong
    assert collapsed.collapse().config.collapsed


def test_initialisations():
    paper = ShaRnn(ShaRnnConfig(width=256, blocks=2, attention=(0,), init="paper", window=64))
    small = 0.1 / math.sqrt(256)
    for weight in (paper.head.weight, paper.blocks[0].boom.up.weight, paper.blocks[0].attention.value.mix.weight):
        assert weight.std().item() == pytest.approx(small, rel=0.05)
    assert paper.blocks[0].boom.up.bias.abs().max() == 0
    assert paper.blocks[1].lstm.weight_hh_l0.abs().max().item() == pytest.approx(1 / 16, rel=0.01)
    desk = ShaRnn(ShaRnnConfig(width=256, blocks=2, attention=(0,), window=64))
    assert desk.head.weight.std().item() == pytest.approx(1 / 16, rel=0.05)
    assert desk.blocks[0].boom.up.weight.abs().max().item() == pytest.approx(1 / 16, rel=0.01)
    for model in (paper, desk):
        assert all(
            (m.weight == 1).all() and (m.bias == 0).all() for m in model.modules() if "LayerNorm" in str(type(m))
        )
    closed, opened = paper.blocks[0].attention, desk.blocks[0].attention
    assert (closed.query_gate == 0).all() and (closed.key_gate == 0).all()
    assert ((opened.query_gate.sigmoid() * opened.key_gate.sigmoid()) > 0.9).all()
    assert closed.value().abs().mean() < 0.1 and 0.6 < opened.value().abs().mean() < 0.8
    assert 64 < (opened.value() > 0).sum() < 192
    tokens = torch.randint(0, 256, (4, 65))
    loss, _ = paper.objective(tokens, paper.start(4), 0.0)
    assert loss.total.item() == pytest.approx(math.log(256), rel=0.01)


def test_dropout_is_everywhere_it_should_be_and_only_in_training(monkeypatch):
    shapes = []
    for module in (layers.dropout, layers.attend, layers.boom):
        monkeypatch.setattr(module, "draw_kept", lambda shape, p: (shapes.append((*shape, p)), draw_kept(shape, p))[1])
    model = ShaRnn(ShaRnnConfig(width=8, blocks=1, attention=(0,), dropout=0.3))
    tokens, state = torch.zeros(2, 4, dtype=torch.long), model.start(2)
    model(tokens, state)
    stream = (4, 2, 8, 0.3)
    embedding = lstm = looked_up = boom_out = last = stream
    query, weights, values, boom_hidden = (2, 4, 8, 0.3), (2, 4, 4, 0.3), (2, 4, 8, 0.3), (8, 32, 0.3)
    assert shapes == [embedding, lstm, query, weights, values, looked_up, boom_hidden, boom_out, last]
    shapes.clear()
    model.eval()(tokens, state)
    assert shapes == []


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [({"attention": (2,)}, "not in 0"), ({"attention": (-1,)}, "not in 0"), ({"attention": (0, 0)}, "twice")],
)
def test_config_refuses_blocks_that_are_not_there(keys, sentence):
    with pytest.raises(ValueError, match=sentence):
        ShaRnnConfig(blocks=2, **keys)


def test_recompute_changes_nothing_but_memory():
    """The same loss, gradients and state with dropout on: masks are drawn again from the same place."""
    found = []
    sizes = {"width": 8, "blocks": 3, "attention": (1,), "window": 12, "dropout": 0.3}
    for recompute in ("nothing", "blocks", "layers"):
        torch.manual_seed(0)
        model = ShaRnn(ShaRnnConfig(**sizes, recompute=recompute)).double()
        state = model.start(2)
        torch.manual_seed(1)
        for tokens in torch.arange(164).view(2, 82).split(41, dim=1):  # 40 steps, more than the LSTM's piece
            loss, state = model.objective(tokens, state, 0.0)
            loss.total.backward()
            state = state.detach()
        found.append([p.grad for p in model.parameters()] + list(state.to_tensors().values()))
    assert all(torch.equal(a, b) for a, b in zip(found[0], found[1], strict=True))
    assert all(torch.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(found[0], found[2], strict=True))


def test_recomputing_the_lstm_keeps_less():
    """What is kept for the backward pass, in numbers: the kernel's own workspace is most of it."""

    def kept(recompute):
        model, numbers = ShaRnn(ShaRnnConfig(width=32, blocks=2, recompute=recompute)), {}

        def count(tensor):
            numbers[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            model.objective(torch.zeros(4, 257, dtype=torch.long), model.start(4), 0.0)
        return sum(numbers.values())

    assert kept("layers") < 0.5 * kept("nothing")

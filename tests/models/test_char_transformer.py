"""The deep character Transformer against torch's layers, its published counts, its windows, and its options."""

from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from headcount import layers
from headcount.layers.dropout import draw_kept
from headcount.layers.transformer import Layer
from headcount.measure.sample import Sampling, sample
from headcount.measure.sliding import score_sliding
from headcount.models.char_transformer import CharTransformer, CharTransformerConfig
from headcount.use.describe import describe
from tests.conftest import make_text

SIZES = {"vocabulary": 40, "width": 12, "layers": 3, "heads": 2, "inner": 20, "context": 16}


def build(**settings):
    torch.manual_seed(6)
    return CharTransformer(CharTransformerConfig(**{**SIZES, **settings})).double()


def draw(length, batch=2, seed=1):
    return torch.randint(0, 40, (batch, length), generator=torch.Generator().manual_seed(seed))


def torchs(layer, norm):
    """torch's layer with our weights: its attention has biases, which are set to zero."""
    width, inner = layer.positions.shape[1], layer.up.out_features
    theirs = nn.TransformerEncoderLayer(
        width, layer.attention.heads, inner, dropout=0.0, batch_first=True, norm_first=norm == "pre"
    ).double()
    pairs = {
        "self_attn.in_proj_weight": layer.attention.mix.weight,
        "self_attn.out_proj.weight": layer.attention.out.weight,
        "linear1.weight": layer.up.weight,
        "linear1.bias": layer.up.bias,
        "linear2.weight": layer.down.weight,
        "linear2.bias": layer.down.bias,
        "norm1.weight": layer.attention_norm.weight,
        "norm1.bias": layer.attention_norm.bias,
        "norm2.weight": layer.forward_norm.weight,
        "norm2.bias": layer.forward_norm.bias,
    }
    zeros = {name: torch.zeros_like(theirs.state_dict()[name]) for name in theirs.state_dict() if name not in pairs}
    assert set(zeros) == {"self_attn.in_proj_bias", "self_attn.out_proj.bias"}
    theirs.load_state_dict({name: tensor.detach() for name, tensor in pairs.items()} | zeros)
    return theirs, pairs


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_layer_is_torchs(norm):
    torch.manual_seed(0)
    layer = Layer(12, 2, 20, 16, norm, 0.0).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=0.5)
    theirs, pairs = torchs(layer, norm)
    x, upper = torch.randn(3, 16, 12, dtype=torch.float64), torch.randn(3, 16, 12, dtype=torch.float64)
    ours, _ = layer(x, None)
    mask = nn.Transformer.generate_square_subsequent_mask(16, dtype=torch.float64)
    expected = theirs(x + layer.positions.detach(), src_mask=mask, is_causal=True)
    assert (ours - expected).abs().max() < 1e-10
    ours.backward(upper)
    expected.backward(upper)
    of = dict(theirs.named_parameters())
    assert all((mine.grad - of[name].grad).abs().max() < 1e-10 for name, mine in pairs.items())


@pytest.mark.parametrize(
    ("name", "counts", "heads", "printed"),
    [
        ("t12", (44_232_704, 41_212_160), 24, "44M"),
        ("t64", (235_339_776, 218_661_120), 128, "235M"),
    ],
)
def test_published_sizes(name, counts, heads, printed):
    facts = describe(f"recipes/paper/char_transformer_{name}.toml")
    assert tuple(facts["parameters"].values()) == counts and facts["heads"] == heads
    assert facts["published"]["parameters"].startswith(printed) and facts["receptive_field"] == 512


def test_every_layer_has_positions_of_its_own():
    model, tokens = build(), draw(10)
    tables = [layer.positions for layer in model.layers]
    assert len({table.data_ptr() for table in tables}) == 3
    assert all(not a.equal(b) for a in tables for b in tables if a is not b)
    for i, table in enumerate(tables):
        before = hidden_of_every_layer(model, tokens)
        with torch.no_grad():
            table[4] += 1.0
        after = hidden_of_every_layer(model, tokens)
        assert all(a.equal(b) for a, b in zip(before[:i], after[:i], strict=True))
        assert before[i][:, :4].equal(after[i][:, :4]) and not torch.allclose(before[i][:, 4], after[i][:, 4])


def hidden_of_every_layer(model, tokens):
    """A window that begins at position 0."""
    x, found = model.embedding(tokens), []
    for layer in model.layers:
        x, _ = layer(x, None)
        found.append(x)
    return found


def test_recompute_changes_nothing_but_memory():
    """The same losses, gradients and state with dropout on; and less is kept for the backward pass."""
    found, kept = [], []
    for recompute in ("nothing", "layers"):
        model, numbers = build(dropout=0.3, recompute=recompute), {}

        def count(tensor, numbers=numbers):
            numbers[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            loss, state = model.objective(draw(2 + 42), model.start(2), 0.0)  # two windows and a part of one
        loss.total.backward()
        found.append([*loss.parts.values(), *(p.grad for p in model.parameters()), *state.to_tensors().values()])
        kept.append(sum(numbers.values()))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert kept[1] < 0.5 * kept[0]


def test_dropout_is_on_weights_and_relu_and_only_in_training(monkeypatch):
    shapes = []
    for module in (layers.dropout, layers.multihead):
        monkeypatch.setattr(module, "draw_kept", lambda shape, p: (shapes.append((*shape, p)), draw_kept(shape, p))[1])
    model = build(dropout=0.3)
    model.objective(draw(12), model.start(2), 0.0)
    assert shapes == [(2 * 2, 10, 10, 0.3), (2, 10, 20, 0.3)] * 3
    shapes.clear()
    model.eval()(draw(10), model.start(2))
    assert shapes == []


@pytest.mark.parametrize("window", [None, 5, 16, 99])
def test_a_new_window_knows_nothing_of_the_one_before(window):
    model, tokens = build(), draw(40)
    size = min(window or 16, 16)
    hidden, state = model(tokens, model.start(2, window=window))
    for begin in range(0, 40, size):
        alone, _ = model(tokens[:, begin : begin + size], model.start(2))
        assert (hidden[:, begin : begin + size] - alone).abs().max() < 1e-12
    assert state.rows == 40 % size and state.layers[0].window == size
    assert model.restarts_after == 16


def test_a_segment_may_pass_several_windows_or_end_within_one():
    model, tokens = build(), draw(40 + 2)
    whole, after = model.objective(tokens, model.start(2), 0.0)
    hidden, _ = model(tokens[:, :40], model.start(2))
    assert (whole.parts["nll"] - model.head.nll(hidden, tokens[:, 1:41]).mean()).abs() < 1e-12
    assert after.rows == 40 % 16
    first, state = model.objective(tokens[:, : 10 + 2], model.start(2), 0.0)
    second, state = model.objective(tokens[:, 10:], state.detach(), 0.0)
    for name, mean in whole.parts.items():
        assert ((10 * first.parts[name] + 30 * second.parts[name]) / 40 - mean).abs() < 1e-12
    with torch.no_grad():
        loss, state = model.objective(tokens, model.start(2), 0.0)
    assert all((loss.parts[name] - mean).abs() < 1e-12 for name, mean in whole.parts.items())
    with pytest.raises(RuntimeError, match="gradients off"):
        model.objective(tokens, state, 0.0)


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("length", "rows"), [(16, 1), (16, 5), (16, 16), (9, 4), (9, 12), (40, 20)])
def test_tail_is_the_end_of_the_whole(norm, length, rows):
    model, tokens = build(norm=norm), draw(length)
    hidden, _ = model(tokens, model.start(2))
    assert (model.tail(tokens, model.start(2), rows) - hidden[:, -rows:]).abs().max() < 1e-12
    _, state = model(tokens[:, :3], model.start(2))
    assert (model.tail(tokens[:, 3:], state, 2) - hidden[:, -2:]).abs().max() < 1e-12


@torch.no_grad()
def test_tail_computes_the_needed_rows_of_the_last_layer_only():
    model, tokens = build(layers=1), draw(16)
    width, inner, rows = 12, 20, 3

    def counted(work):
        with FlopCounterMode(display=False) as counter:
            work()
        return counter.get_total_flops()

    saved = counted(lambda: model(tokens, model.start(2))) - counted(lambda: model.tail(tokens, model.start(2), rows))
    of_a_row = 2 * (2 * width**2 + 2 * width * inner)  # query, output, feed-forward
    assert saved >= 2 * (16 - rows) * of_a_row


@pytest.mark.parametrize("stride", [1, 4, 16])
def test_sliding_reads_every_window_anew(stride):
    model, data = build(vocabulary=256).eval(), np.frombuffer(make_text(60), dtype=np.uint8)
    found = np.concatenate(list(score_sliding(model, data, start=10, context=16, stride=stride)))
    fed, expected = [10, *data.tolist()], []
    for t in range(60):
        last = 16 + max(0, -(-(t + 1 - 16) // stride)) * stride
        first = min(last, 60) - 16
        hidden, _ = model(torch.tensor([fed[first : t + 1]]), model.start(1))
        expected.append(model.head.nll(hidden[:, -1:], torch.tensor([[fed[t + 1]]])).item())
    assert np.abs(found - expected).max() < 1e-9


def test_generation_reads_the_last_half_again_when_the_window_is_full():
    model = build(vocabulary=256).eval()
    written = bytes(islice(sample(model, b"abc", Sampling(temperature=0), start=10), 60))
    recent = [10, *b"abc"]
    for byte in written:
        if len(recent) > 16:
            recent = recent[-8:]
        hidden, _ = model(torch.tensor([recent]), model.start(1))
        assert model.head.log_probs(hidden)[0, -1].argmax().item() == byte
        recent.append(byte)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_look_back_shows_the_weights_that_attention_uses(norm, monkeypatch):
    model, tokens, mixtures = build(norm=norm), draw(40), []
    real = layers.multihead.attend_heads

    def kept(query, keys, values, dropout):
        mixtures.append((values, real(query, keys, values, dropout)))
        return mixtures[-1][1]

    monkeypatch.setattr("headcount.layers.transformer.attend_heads", kept)
    state = model.start(2)
    for begin, end in ((0, 10), (10, 16), (16, 36), (36, 40)):
        mixtures.clear()
        old = state.rows
        found, state = model.look_back(tokens[:, begin:end], state)
        assert len(found) == model.heads == 6 and all(w.shape == (2, end - begin, old + end - begin) for w in found)
        for head, weights in enumerate(found):
            layer, number = divmod(head, 2)
            assert torch.allclose(weights.sum(-1), torch.ones((), dtype=torch.float64))
            at = 0
            for values, mixture in mixtures[layer::3]:
                part = mixture.shape[-2]
                seen = weights[:, at : at + part, : old + at + part][..., -values.shape[-2] :]
                assert torch.allclose(seen @ values[:, number], mixture[:, number])
                at += part
    after = model(tokens, model.start(2))[1]
    assert all(a.rows.allclose(b.rows) for a, b in zip(after.layers, state.layers, strict=True))


def test_outline_and_costs():
    model = build()
    names = [part.name for part in model.outline()]
    assert names == ["embedding", *["positions", "attention, 2 heads", "feed-forward"] * 3, "classifier"]
    assert [part.name for part in build(tied=True).outline()] == [*names[:-1], "classifier (tied)"]
    spec = model.spec()
    assert sum(part.state for part in model.outline()) * 8 == spec.state_bytes and spec.receptive_field == 16
    assert model.units(model.start(1)) == {}


def test_heads_share_the_width():
    with pytest.raises(ValueError, match="heads = 5: width = 12 is not a multiple"):
        CharTransformerConfig(width=12, heads=5)

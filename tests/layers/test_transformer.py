"""A layer that never looks ahead, against loops in float64; its memory; and the rows that nobody asks for."""

import math

import pytest
import torch

from headcount.layers.memory import Memory
from headcount.layers.transformer import Attention, Layer

WIDTH, HEADS, INNER, CONTEXT = 6, 2, 8, 9
NORMS = ["post", "pre"]


def layer(norm, dropout=0.0, biases=False):
    torch.manual_seed(7)
    made = Layer(WIDTH, HEADS, INNER, CONTEXT, norm, dropout, biases).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def drawn(length=7):
    torch.manual_seed(8)
    return torch.randn(2, length, WIDTH, dtype=torch.float64, requires_grad=True)


def empty(batch=2):
    like = torch.zeros((), dtype=torch.float64)
    return Memory.empty(batch, WIDTH // HEADS, CONTEXT, like, heads=2 * HEADS)


def normed(x, norm):
    centred = x - x.mean()
    return centred / torch.sqrt((centred**2).mean() + norm.eps) * norm.weight + norm.bias


def attended(attention, rows, t):
    """W_o·(softmax(q·kᵀ/√d)·v) of row t over the rows 0 … t, head by head; and the weights, H × (t + 1)."""
    d, (to_query, to_key, to_value) = WIDTH // HEADS, attention.mix.weight.chunk(3)
    nothing = torch.zeros(3 * WIDTH, dtype=torch.float64)
    of_query, of_key, of_value = (nothing if attention.mix.bias is None else attention.mix.bias).chunk(3)
    of_out = nothing[:WIDTH] if attention.out.bias is None else attention.out.bias
    mixed, looked = [], []
    for h in range(HEADS):
        part = slice(h * d, (h + 1) * d)
        query = to_query[part] @ rows[t] + of_query[part]
        keys = [to_key[part] @ rows[s] + of_key[part] for s in range(t + 1)]
        looked.append(torch.softmax(torch.stack([query @ key / math.sqrt(d) for key in keys]), dim=0))
        mixed.append(sum(looked[-1][s] * (to_value[part] @ rows[s] + of_value[part]) for s in range(t + 1)))
    return attention.out.weight @ torch.cat(mixed) + of_out, torch.stack(looked)


def plain(made, x):
    """The equations of the module, row by row."""

    def fed(z):
        wide = made.up.weight @ z + made.up.bias
        return made.down.weight @ torch.where(wide > 0, wide, 0.0) + made.down.bias

    streams = []
    for stream in x:
        placed = [stream[t] + made.positions[t] for t in range(len(stream))]
        read = [normed(row, made.attention_norm) for row in placed] if made.pre else placed
        rows = []
        for t in range(len(stream)):
            h = placed[t] + attended(made.attention, read, t)[0]
            if made.pre:
                rows.append(h + fed(normed(h, made.forward_norm)))
            else:
                h = normed(h, made.attention_norm)
                rows.append(normed(h + fed(h), made.forward_norm))
        streams.append(torch.stack(rows))
    return torch.stack(streams)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("length", [1, 7, CONTEXT])
@pytest.mark.parametrize("biases", [False, True])
def test_row_by_row(norm, length, biases):
    made, x = layer(norm, biases=biases), drawn(length)
    found, memory = made(x, None)
    expected = plain(made, x)
    assert memory is None and (found - expected).abs().max() < 1e-12
    learnt, upper = [x, *made.parameters()], torch.randn_like(found)
    assert len(learnt) == 12 + 2 * biases
    ours, theirs = (torch.autograd.grad(out, learnt, upper) for out in (found, expected))
    assert all((one - other).abs().max() < 1e-12 for one, other in zip(ours, theirs, strict=True))
    with torch.no_grad():
        assert (made(x, None)[0] - expected).abs().max() < 1e-12


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("norm", NORMS)
def test_pieces_give_what_the_whole_gives(norm, gradients):
    made, x = layer(norm), drawn(CONTEXT)
    memory, parts, weights = empty(), [], []
    with torch.set_grad_enabled(gradients):
        for begin, end in ((0, 1), (1, 5), (5, 6), (6, CONTEXT)):
            before = memory.clone()
            with torch.enable_grad():
                placed = made.placed(x[:, begin:end], before)
                weights.append(made.attention.weights(made.read(placed), before))
            found, memory = made(x[:, begin:end], memory)
            parts.append(found)
            assert memory.rows.shape == (2, 2 * HEADS, end, WIDTH // HEADS)
    assert (torch.cat(parts, dim=1) - plain(made, x)).abs().max() < 1e-12
    assert [w.shape for w in weights] == [(2, HEADS, t, s) for t, s in ((1, 1), (4, 5), (1, 6), (3, 9))]
    read = made.read(made.placed(x, None))
    last = attended(made.attention, read[1], CONTEXT - 1)[1]
    assert (weights[-1][1, :, -1] - last).abs().max() < 1e-12


@pytest.mark.parametrize("remembered", [True, False])
@pytest.mark.parametrize("last", [1, 3, 7])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("biases", [False, True])
def test_the_last_rows_alone(norm, last, remembered, biases):
    made, x = layer(norm, biases=biases), drawn()
    found, memory = made(x, empty() if remembered else None, last)
    assert found.shape == (2, last, WIDTH)
    assert (found - plain(made, x)[:, -last:]).abs().max() < 1e-12
    assert (memory is not None) == remembered and (not remembered or memory.length == 7)


@pytest.mark.parametrize("norm", NORMS)
def test_nothing_ahead_is_seen(norm):
    made, x = layer(norm), drawn()
    other = x.detach().clone()
    other[:, 4:] += 1
    assert torch.equal(made(x, None)[0][:, :4], made(other, None)[0][:, :4])


def test_dropout_falls_on_weights_and_relu_in_training_only(monkeypatch):
    made, x, shapes = layer("pre", dropout=0.5), drawn(), []
    expected = plain(made, x)
    assert (made.eval()(x, None)[0] - expected).abs().max() < 1e-12

    def kept(z, p, training):
        shapes.append((tuple(z.shape), p, training))
        return z

    monkeypatch.setattr("headcount.layers.transformer.dropout", kept)
    found, _ = made.train()(x, None)
    assert shapes == [((2, 7, INNER), 0.5, True)]
    assert (found - expected).abs().max() > 1e-3  # that of the weights


def test_biases_begin_at_zero():
    attention = Attention(WIDTH, HEADS, 0.0, biases=True)
    assert not attention.mix.bias.any() and not attention.out.bias.any()
    assert attention.mix.bias.shape == (3 * WIDTH,) and attention.out.bias.shape == (WIDTH,)


def test_rows_are_in_the_dtype_of_the_weights_under_autocast():
    attention, memory = Attention(WIDTH, HEADS, 0.0), Memory.empty(2, 3, CONTEXT, torch.zeros(()), heads=2 * HEADS)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        _, memory = attention(torch.randn(2, 4, WIDTH), memory, 4)
    assert memory.rows.dtype == torch.float32

"""All heads of a layer, with positions of every kind, against loops over heads, queries and keys in float64."""

import math
from types import SimpleNamespace

import pytest
import torch

from headcount.layers.memory import seen
from headcount.layers.positions import frequencies, sinusoid
from headcount.layers.relative_heads import Attention, Projected, Seen, as_bias

WIDTH, HEADS, D, WINDOW = 6, 2, 4, 5
"""Two heads of 4 have more together than the stream; Shaw's table has five distances."""
KINDS = [("relative", True), ("relative", False), ("shaw", True), ("none", True)]


def layer(positions, shared, **settings):
    torch.manual_seed(5)
    sizes = {"width": WIDTH, "heads": HEADS, "d": D, "window": WINDOW, "positions": positions, "shared_biases": shared}
    config = SimpleNamespace(**{**sizes, "recompute": "nothing", "attention_dropout": 0.0, **settings})
    attention = Attention(config).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return attention


def given(attention, length, rows, window=None):
    """What the last T of S rows are and see: x, the rows, `Seen`, and what requires a gradient."""
    torch.manual_seed(6)
    x_rows = torch.randn(2, rows, WIDTH, dtype=torch.float64, requires_grad=True)
    shared = tuple(torch.randn(HEADS, D, dtype=torch.float64, requires_grad=True) for _ in range(2))
    distances, positions = torch.arange(rows - 1, -1, -1), attention.config.positions
    waves = sinusoid(distances, frequencies(WIDTH)) if positions == "relative" else None
    needs = positions == "relative" and attention.config.shared_biases
    see = Seen(
        both=attention.keys_and_values(x_rows),
        hide=as_bias(seen(length, rows, window, x_rows.device), x_rows),
        projected=None if positions == "none" else attention.project(distances, waves),
        biases=shared if needs else None,
    )
    return x_rows[:, rows - length :], x_rows, see, [x_rows, *attention.parameters(), *(shared if needs else ())]


def place_term(attention, query, head, back, v):
    """What the distance adds to a score, before it is scaled."""
    if attention.config.positions == "relative":
        wave = sinusoid(torch.tensor([back]), frequencies(WIDTH))[0]
        r = attention.distance.weight[head * D : (head + 1) * D] @ wave
        return (query + v[head]) @ r
    if attention.config.positions == "shaw":
        row = min(back, WINDOW - 1)
        return query @ attention.table[row, head] + attention.table_bias[row, head]
    return 0.0


def plain(attention, x_rows, length, biases, window=None):
    """softmax(s)·v of every head, side by side, through W_o; and the weights, B × H × T × S."""
    batch, rows, _ = x_rows.shape
    none = torch.zeros(HEADS, D, dtype=torch.float64)
    own = getattr(attention, "content_bias", none), getattr(attention, "distance_bias", none)
    u, v = biases or own
    outs, all_weights = [], []
    for b in range(batch):
        for i in range(length):
            heads = []
            for h in range(HEADS):
                part, at = slice(h * D, (h + 1) * D), rows - length + i
                query = attention.query.weight[part] @ x_rows[b, at]
                key_rows, value_rows = attention.key_value.weight.chunk(2)
                scores, values = [], []
                for j in range(rows):
                    score = query.new_tensor(-math.inf)
                    if 0 <= at - j < (window or rows):
                        content = (query + u[h]) @ (key_rows[part] @ x_rows[b, j])
                        score = (content + place_term(attention, query, h, at - j, v)) / math.sqrt(D)
                    scores.append(score)
                    values.append(value_rows[part] @ x_rows[b, j])
                weights = torch.softmax(torch.stack(scores), dim=0)
                all_weights.append(weights)
                heads.append(weights @ torch.stack(values))
            outs.append(attention.out.weight @ torch.cat(heads))
    weights = torch.stack(all_weights).view(batch, length, HEADS, rows).transpose(1, 2)
    return torch.stack(outs).view(batch, length, WIDTH), weights


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("length", "rows"), [(1, 7), (4, 7), (7, 7)])
@pytest.mark.parametrize(("positions", "shared"), KINDS)
def test_pair_by_pair(positions, shared, length, rows, window):
    window = None if length == 1 or positions == "none" else window
    attention = layer(positions, shared)
    x, x_rows, see, learnt = given(attention, length, rows, window)
    found, (expected, weights) = attention(x, see), plain(attention, x_rows, length, see.biases, window)
    assert (found - expected).abs().max() < 1e-12
    assert (attention.weights(x, see) - weights).abs().max() < 1e-12
    upper = torch.randn_like(found)
    ours = torch.autograd.grad(found, learnt, upper)
    for one, other in zip(ours, torch.autograd.grad(expected, learnt, upper), strict=True):
        assert (one - other).abs().max() < 1e-12
    with torch.no_grad():
        assert (attention(x, see) - expected).abs().max() < 1e-12


@pytest.mark.parametrize(("positions", "shared"), KINDS)
def test_what_a_kind_has_to_learn(positions, shared):
    names = {name for name, _ in layer(positions, shared).named_parameters()}
    both = {"query.weight", "key_value.weight", "out.weight"}
    own = {
        ("relative", True): {"distance.weight"},
        ("relative", False): {"distance.weight", "content_bias", "distance_bias"},
        ("shaw", True): {"table", "table_bias", "content_bias"},
        ("none", True): set(),
    }
    assert names == both | own[positions, shared]


@pytest.mark.parametrize(("positions", "shared"), KINDS)
def test_dropout_falls_on_weights_in_training_only(positions, shared):
    attention = layer(positions, shared, attention_dropout=0.5)
    x, x_rows, see, _ = given(attention, 4, 7)
    expected, _ = plain(attention, x_rows, 4, see.biases)
    assert (attention(x, see) - expected).abs().max() > 1e-3
    assert (attention.eval()(x, see) - expected).abs().max() < 1e-12


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_recompute_keeps_less_and_changes_nothing(p):
    found, kept = [], []
    for recompute in ("nothing", "layers"):
        attention, shapes = layer("relative", False, recompute=recompute, attention_dropout=p), []
        x, _, see, learnt = given(attention, 4, 7)
        torch.manual_seed(7)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, shapes=shapes: shapes.append((*t.shape, t.dtype)) or t, lambda t: t
        ):
            out = attention(x, see)
        found.append(torch.autograd.grad(out.square().sum(), learnt))
        kept.append(shapes)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    weights = (HEADS, 4, 7, torch.float64)
    assert [shapes.count(weights) for shapes in kept] == [2, 0]  # those of either stream, or none
    assert len(kept[0]) == len(kept[1]) + 2


def rows_made(steps):
    """How many rows were projected, call by call, for such steps: rows that are needed, and the most that can be."""
    made, kept = [], Projected()

    def project(rows):
        made.append(rows)
        return [torch.arange(rows - 1, -1, -1)[None, :, None]]

    for rows, most in steps:
        (table,) = kept.reach(rows, most, project)
        assert table[0, :, 0].tolist() == list(range(rows - 1, -1, -1))
    return made


def test_projected_rows_are_made_a_few_times_while_a_text_grows():
    grown = [(min(rows, 200), 200) for rows in range(1, 400)]  # byte by byte, into a window of 200
    with torch.no_grad():
        assert rows_made(grown) == [2, 6, 14, 30, 62, 126, 200]
    assert len(rows_made(grown)) == len(grown)  # with gradients they are a part of every graph


@torch.no_grad()
def test_no_more_rows_are_kept_than_can_be_seen():
    assert rows_made([(128, 3_927), (3_927, 3_927), (3_800, 3_800)]) == [256, 3_927]
    assert rows_made([(3_800, 3_800), (3_927, 3_927), (3_800, 3_800)]) == [3_800, 3_927]  # a longer segment later


def test_rows_keep_their_dtype_under_autocast():
    attention = layer("relative", False).float()
    rows = torch.randn(2, 7, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        both = attention.keys_and_values(rows)
        projected = attention.project(torch.arange(7), sinusoid(torch.arange(7), frequencies(WIDTH)))
        mixed = attention(rows, Seen(both, as_bias(seen(7, 7, None, rows.device), rows), projected, None))
    assert both.shape == (2, 2 * HEADS, 7, D) and both.dtype == projected.dtype == torch.float32
    assert mixed.shape == (2, 7, WIDTH)


def test_a_mask_as_what_is_added():
    mask = torch.tensor([[True, False], [True, True]])
    bias = as_bias(mask, torch.zeros((), dtype=torch.bfloat16))
    assert bias.dtype == torch.bfloat16 and bias.tolist() == [[0.0, -math.inf], [0.0, 0.0]]
    assert as_bias(None, bias) is None

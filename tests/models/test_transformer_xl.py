"""Transformer-XL: its variants against loops, its memory, its options, its published sizes."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headcount.layers import dropout as dropouts
from headcount.models import transformer_xl as module
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from tests.models.plain_positions import written_out

SMALL = {"vocabulary": 30, "width": 8, "layers": 2, "heads": 2, "inner": 12, "window": 6, "init_std": 0.3}
LENGTHS = (3, 1, 7, 2, 5)


def build(**changes):
    torch.manual_seed(0)
    return TransformerXL(TransformerXLConfig(**{**SMALL, **changes})).double().eval()


def tokens(batch=2, length=18):
    return torch.randint(0, 30, (batch, length), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
@pytest.mark.parametrize(("positions", "length"), [("sinusoid", 6), ("learned", 6), ("shaw", 18)])
def test_variants_of_the_ablation_against_a_loop(positions, length):
    model = build(positions=positions, layers=2 if positions != "shaw" else 1)
    row = tokens()[0, :length]
    hidden, _ = model(row[None], model.start(1))
    assert (hidden[0] - written_out(model, row)).abs().max() < 1e-10


@torch.no_grad()
def test_a_final_norm_is_one_of_the_last_vectors_and_of_nothing_else():
    """Whole and byte by byte, with the gain, the shift and the eps of its own."""
    plain, normed = (build(norm="pre", final_norm=own, eps=0.1) for own in (False, True))
    normed.load_state_dict({**normed.state_dict(), **plain.state_dict()})
    gain, shift = normed.final_norm.weight.normal_(), normed.final_norm.bias.normal_()
    expected = torch.nn.functional.layer_norm(plain(tokens(), plain.start(2))[0], (8,), gain, shift, 0.1)
    state, hidden = normed.start(1), []
    for byte in tokens()[:1].split(1, dim=1):
        one, state = normed(byte, state)
        hidden.append(one)
    assert (normed(tokens(), normed.start(2))[0] - expected).abs().max() < 1e-12
    assert (torch.cat(hidden, dim=1) - expected[:1]).abs().max() < 1e-12


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoid", "learned"])
def test_absolute_positions_begin_a_new_window_when_it_is_full(positions):
    model = build(positions=positions)
    assert model.restarts_after == 6
    text = tokens(length=16)
    hidden, _ = model(text, model.start(2))
    again, _ = model(text[:, 6:12], model.start(2))
    assert (hidden[:, 6:12] - again).abs().max() < 1e-12
    sooner, _ = model(text, model.start(2, window=4))
    assert (sooner[:, 4:8] - model(text[:, 4:8], model.start(2))[0]).abs().max() < 1e-12


def test_position_tables_are_distinct_by_layer():
    model = build(positions="learned")
    assert model.places.shape == (2, 6, 8) and not model.places[0].equal(model.places[1])


@torch.no_grad()
def test_shaws_table_reuses_its_farthest_row():
    model = build(positions="shaw", layers=1)
    wide, _ = model(tokens(), model.start(2, window=12))
    model.layers[0].attention.table[-1] += 1.0
    changed, _ = model(tokens(), model.start(2, window=12))
    assert wide[:, :5].equal(changed[:, :5]) and not torch.allclose(wide[:, 5], changed[:, 5])
    assert not torch.allclose(wide[:, 11], changed[:, 11])


@torch.no_grad()
def test_a_segment_loss_of_the_last_half():
    full, half = build(), build(loss="half")
    text = tokens(length=10)
    hidden, _ = full(text[:, :-1], full.start(2))
    nats = full.head.nll(hidden, text[:, 1:])
    assert full.objective(text, full.start(2), 0.0)[0].total.item() == pytest.approx(nats.mean().item())
    assert half.objective(text, half.start(2), 0.0)[0].total.item() == pytest.approx(nats[:, 4:].mean().item())


def test_no_gradient_goes_through_the_memory_but_its_projections_learn_from_it():
    model = build(window=20)
    text = tokens()

    def gradients(state):
        model.zero_grad()
        hidden, after = model(text[:, 9:10], state)
        model.head.nll(hidden, text[:, 10:11]).sum().backward()
        return model.layers[0].attention.key_value.weight.grad.clone(), after

    _, state = model(text[:, :9], model.start(2))  # as it comes, not detached by the caller
    assert not any(memory.buffer.requires_grad for memory in state.layers)
    with_memory, after = gradients(state)
    assert not any(memory.buffer.requires_grad for memory in after.layers)
    assert not torch.allclose(with_memory, gradients(model.start(2))[0])


def test_both_forms_of_the_state_give_the_same_numbers_and_one_of_them_knows_keys_and_values():
    for changes in ({}, {"norm": "pre", "memory_start": "zeros"}, {"window_rule": "memory"}, {"shared_biases": False}):
        model = build(**changes)
        state, other, begin = model.start(2), model.start(2), 0
        for length in LENGTHS:
            part = tokens()[:, begin : begin + length]
            with_gradients, state = model(part, state)
            with torch.no_grad():
                without, other = model(part, other)
            assert (with_gradients - without).abs().max() < 1e-10
            begin += length
        assert state.layers[0].rows.shape == (2, 6, 8) and other.layers[0].rows.shape == (2, 4, 6, 4)


def test_dropout_falls_on_seven_places(monkeypatch):
    """Every dropout becomes a factor: the factors that reach the output tell where they stand."""
    places = []

    def marked(x, p, training):
        places.append(tuple(x.shape))
        return x * 0.9

    for owner in (module, dropouts):
        monkeypatch.setattr(owner, "dropout", marked)
    model = build(dropout=0.5, layers=1, window=4).train()
    model(tokens(length=3), model.start(2))
    # h⁰, R (one for all streams), after W_o, inside the feed-forward layer, after it, the last hidden vector
    assert sorted(places) == sorted([(2, 3, 8), (3, 8), (2, 3, 8), (2, 3, 12), (2, 3, 8), (2, 3, 8)])


def test_attention_dropout_is_its_own():
    model = build(attention_dropout=0.5).train()
    text = tokens()
    torch.manual_seed(1)
    one, _ = model(text, model.start(2))
    torch.manual_seed(2)
    other, _ = model(text, model.start(2))
    assert not torch.allclose(one, other)
    model.eval()
    assert model(text, model.start(2))[0].equal(model(text, model.start(2))[0])


def test_initialisation():
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(width=128, layers=2, cutoffs=(50, 100), division=2))
    for name, parameter in model.named_parameters():
        if "bias" in name and not name.startswith(("content", "distance")):
            assert (parameter == 0).all(), name
        elif "norm.weight" in name:
            assert abs(parameter.mean() - 1) < 0.01 and abs(parameter.std() - 0.02) < 0.005, name
        else:
            assert abs(parameter.std() - (0.01 if "projections" in name else 0.02)) < 0.003, name
    wider = TransformerXL(TransformerXLConfig(width=128, init_std=0.1))
    assert abs(wider.layers[0].up.weight.std() - 0.1) < 0.01


COUNTS = {
    "enwik8 12L": (41_055_436, {"vocabulary": 204, "width": 512, "layers": 12, "heads": 8, "inner": 2048}),
    "enwik8 24L": (277_231_820, {"vocabulary": 204, "width": 1024, "layers": 24, "heads": 8, "inner": 3072}),
    "text8 24L": (277_050_395, {"vocabulary": 27, "width": 1024, "layers": 24, "heads": 8, "inner": 3072}),
    "wikitext standard": (
        151_107_538,
        {
            "vocabulary": 267_735,
            "width": 410,
            "layers": 16,
            "heads": 10,
            "inner": 2100,
            "cutoffs": (20000, 40000, 200000),
        },
    ),
}
LARGE = {
    "vocabulary": 267_735,
    "width": 1024,
    "layers": 18,
    "heads": 16,
    "inner": 4096,
    "cutoffs": (20000, 40000, 200000),
    "division": 4,
    "tied_projections": (False, True, True, True),
}
COUNTS["wikitext large"] = (285_170_506, LARGE)
COUNTS["wikitext large, as released"] = (285_205_322, {**LARGE, "shared_biases": False})


@pytest.mark.parametrize("name", COUNTS)
def test_published_sizes(name):
    count, sizes = COUNTS[name]
    with torch.device("meta"):
        spec = TransformerXL(TransformerXLConfig(**sizes)).spec()
    assert spec.parameters == count == spec.parameters_in_use
    assert spec.heads == sizes["layers"] * sizes["heads"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": 3}, "multiple of heads"),
        ({"cutoffs": (5, 5)}, "cutoffs"),
        ({"cutoffs": (30,)}, "cutoffs"),
        ({"cutoffs": (5,), "tied_projections": (True,)}, "all 2 bands"),
        ({"positions": "learned", "window_rule": "memory"}, "no memory"),
        ({"window": 0}, "at least itself"),
        ({"cutoffs": (5,), "division": 64}, "nothing is left"),
    ],
)
def test_a_config_that_cannot_be_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        TransformerXLConfig(**{**SMALL, **changes})


def test_where_the_heads_look():
    model = build()
    state = model.start(1)
    _, state = model(tokens(batch=1)[:, :9], state)
    weights, _ = model.look_back(tokens(batch=1)[:, 9:13], state.detach())
    assert len(weights) == 4 and all(w.shape == (1, 4, 9) for w in weights)
    for w in weights:
        assert torch.allclose(w.sum(-1), torch.ones(1, 4, dtype=torch.float64))
        assert (w[0, 0, 6:] == 0).all() and (w[0, 3, :3] == 0).all() and (w[0, 0, :6] > 0).all()


def test_heads_look_back_to_the_beginning_of_their_window():
    model, given = build(positions="sinusoid"), tokens(batch=1)
    window = model.config.window
    _, state = model(given[:, :2], model.start(1))
    weights, after = model.look_back(given[:, 2 : 2 * window + 3], state.detach())
    assert after.layers[0].length == 3
    looked = [model.look_back(given[:, i : i + window], model.start(1))[0] for i in range(0, 2 * window + 3, window)]
    for number, whole in enumerate(weights):
        expected = torch.zeros(1, 2 * window + 3, 2 * window + 3, dtype=torch.float64)
        for i, part in enumerate(looked):
            part = part[number][:, : 2 * window + 3 - i * window, : 2 * window + 3 - i * window]
            place = slice(i * window, i * window + part.shape[1])
            expected[:, place, place] = part
        assert (whole - expected[:, 2:]).abs().max() < 1e-12


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recompute_changes_nothing_but_memory(dropout):
    found = {}
    for recompute in ("nothing", "layers"):
        model = build(recompute=recompute, dropout=dropout, attention_dropout=dropout).train()
        torch.manual_seed(3)
        _, state = model.objective(tokens(length=9), model.start(2), 0.0)
        loss, _ = model.objective(tokens(length=9), state.detach(), 0.0)
        loss.total.backward()
        found[recompute] = [loss.total.detach(), *(p.grad for p in model.parameters())]
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(*found.values(), strict=True))
    kept = {}
    for recompute in ("nothing", "layers"):
        model, numbers = build(recompute=recompute), {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, numbers=numbers: numbers.update({t.untyped_storage().data_ptr(): t.numel()}) or t, lambda t: t
        ):
            model.objective(tokens(length=40), model.start(2), 0.0)
        kept[recompute] = sum(numbers.values())
    assert kept["layers"] < 0.5 * kept["nothing"]


def test_recomputed_streams_are_worked_through_a_few_at_a_time(monkeypatch):
    model = build(recompute="layers")

    def gradients(at_once):
        monkeypatch.setattr("headcount.layers.recompute.AT_ONCE", at_once)
        model.zero_grad()
        _, state = model.objective(tokens(batch=5), model.start(5), 0.0)
        loss, _ = model.objective(tokens(batch=5), state.detach(), 0.0)
        loss.total.backward()
        return [p.grad.clone() for p in model.parameters()]

    for few, all_of_them in zip(gradients(200), gradients(1 << 30), strict=True):
        assert torch.allclose(few, all_of_them, atol=1e-12)


def test_frequencies_stay_precise_in_a_narrow_model():
    model = TransformerXL(TransformerXLConfig(**SMALL)).bfloat16()
    assert model.frequencies.dtype == torch.float64 and model.layers[0].up.weight.dtype == torch.bfloat16
    with torch.no_grad():
        hidden, _ = model(tokens(), model.start(2))
    assert hidden.dtype == torch.bfloat16 and hidden.isfinite().all()
    assert TransformerXL(TransformerXLConfig(**SMALL)).double().frequencies.dtype == torch.float64


def test_streams_may_be_worked_through_one_by_one(monkeypatch):
    model = build(attention_dropout=0.0)

    def gradients(at_once):
        monkeypatch.setattr("headcount.layers.streams.AT_ONCE", at_once)
        model.zero_grad()
        loss, _ = model.objective(tokens(batch=5), model.start(5), 0.0)
        loss.total.backward()
        return [p.grad.clone() for p in model.parameters()]

    for one, all_of_them in zip(gradients(1), gradients(1 << 30), strict=True):
        assert torch.allclose(one, all_of_them, atol=1e-12)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(
    "changes",
    [{}, {"norm": "pre", "final_norm": True}, {"window_rule": "memory"}, {"memory_start": "zeros"}, {"layers": 1}]
    + [{"positions": positions} for positions in ("shaw", "sinusoid", "learned")],
    ids=str,
)
@pytest.mark.parametrize(("length", "rows"), [(6, 1), (6, 4), (6, 6), (5, 9), (18, 1), (18, 7)])
def test_tail_is_the_end_of_the_whole(changes, gradients, length, rows):
    model, text = build(**changes), tokens(length=length)
    with torch.set_grad_enabled(gradients):
        hidden, _ = model(text, model.start(2))
        assert (model.tail(text, model.start(2), rows) - hidden[:, -rows:]).abs().max() < 1e-12
        _, state = model(text[:, :3], model.start(2))
        hidden, _ = model(text[:, 3:], state.clone())
        assert (model.tail(text[:, 3:], state, rows) - hidden[:, -rows:]).abs().max() < 1e-12


def test_tail_refuses_a_state_from_a_call_without_gradients():
    model = build()
    with torch.no_grad():
        _, state = model(tokens(), model.start(2))
    with pytest.raises(RuntimeError, match="gradients off"):
        model.tail(tokens(), state, 1)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["relative", "learned"])
def test_tail_computes_the_needed_rows_of_the_last_layer_only(positions):
    model, text, rows = build(layers=1, positions=positions), tokens(length=6), 2

    def counted(work):
        with FlopCounterMode(display=False) as counter:
            work()
        return counter.get_total_flops()

    saved = counted(lambda: model(text, model.start(2))) - counted(lambda: model.tail(text, model.start(2), rows))
    of_a_row = 2 * (2 * 8 * 8 + 2 * 8 * 12)  # query, output, feed-forward
    assert saved >= 2 * (6 - rows) * of_a_row

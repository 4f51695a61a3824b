"""The laws that every model keeps, on tiny sizes with fresh weights. A new model is a line in VARIANTS."""

import dataclasses
import math

import pytest
import safetensors.torch
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from headcount.models import MODELS, configure
from tests.conftest import make_text

SHA_RNN = {"kind": "sha-rnn", "width": 24, "blocks": 3, "window": 19}
CHAR = {"kind": "char-transformer", "width": 24, "layers": 3, "heads": 2, "inner": 48, "context": 128, "norm": "post"}
VARIANTS = {
    "sha-rnn-0-heads": {**SHA_RNN, "attention": []},
    "sha-rnn-1-head": {**SHA_RNN, "attention": [1]},
    "sha-rnn-all-heads": {**SHA_RNN, "attention": [0, 1, 2]},
    "sha-rnn-collapsed": {**SHA_RNN, "attention": [0, 2], "collapsed": True},
    "sha-rnn-segment-rule": {**SHA_RNN, "attention": [1], "window": 64, "window_rule": "segment"},
    "sha-rnn-ngrams": {**SHA_RNN, "attention": [1], "ngrams": [2, 4], "ngram_rows": 50},
    "sha-rnn-paper-init": {**SHA_RNN, "attention": [1], "init": "paper"},
    "sha-rnn-adaptive": {**SHA_RNN, "attention": [1], "cutoffs": [200, 230]},
    "char-transformer-post": CHAR,
    "char-transformer-pre": {**CHAR, "norm": "pre"},
    "char-transformer-restarts": {**CHAR, "context": 32, "heads": 3},
    "char-transformer-restarts-often-pre": {**CHAR, "context": 16, "norm": "pre"},
    "char-transformer-recomputed": {**CHAR, "recompute": "layers"},
    "char-transformer-plain": {**CHAR, "intermediate_losses": False, "second_target": False},
    "char-transformer-last-position-mean": {**CHAR, "every_position": False, "layer_reduction": "mean"},
    "char-transformer-biases-tied": {**CHAR, "attention_biases": True, "tied": True},
    "char-transformer-finished": {**CHAR, "finished": True},
}
XL = {"kind": "transformer-xl", "width": 24, "layers": 2, "heads": 3, "inner": 32, "window": 19, "init_std": 0.1}
VARIANTS |= {
    "xl": XL,
    "xl-own-biases-clamp": {**XL, "shared_biases": False, "clamp": 7, "head_width": 5},
    "xl-memory-rule-pre": {**XL, "window": 64, "window_rule": "memory", "norm": "pre", "final_norm": True},
    "xl-recomputed": {**XL, "recompute": "layers"},
    "xl-zeros-pre": {**XL, "memory_start": "zeros", "norm": "pre"},
    "xl-adaptive": {**XL, "cutoffs": [200, 230], "division": 2, "tied_projections": [False, True, True]},
    "xl-shaw": {**XL, "positions": "shaw"},
    "xl-sinusoid": {**XL, "positions": "sinusoid", "window": 32},
    "xl-learned": {**XL, "positions": "learned", "window": 32},
}
LENGTH = 60
BOUND = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.fixture(params=VARIANTS, autouse=True)
def variant(request):
    return VARIANTS[request.param]


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def build(variant, dtype=torch.float32, vocabulary=256):
    torch.manual_seed(5)
    cls, config = configure(variant, vocabulary)
    model = cls(config)
    with torch.no_grad():  # zeros and ones hide mistakes
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.to(dtype).eval()


def draw_tokens(batch=3, length=LENGTH + 1, vocabulary=256):
    return torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(7))


def nll_in_pieces(model, tokens, lengths, *, gradients):
    state, pieces, begin = model.start(len(tokens)), [], 0
    with torch.set_grad_enabled(gradients):
        for length in lengths:
            hidden, state = model(tokens[:, begin : begin + length], state)
            state = state.detach() if gradients else state
            pieces.append(model.head.nll(hidden, tokens[:, begin + 1 : begin + length + 1]).detach())
            begin += length
    assert begin == tokens.shape[1] - 1
    return torch.cat(pieces, dim=1)


def test_every_model_has_a_variant():
    assert {v["kind"] for v in VARIANTS.values()} == set(MODELS)


def test_shapes(variant, dtype):
    model, tokens = build(variant, dtype), draw_tokens()
    hidden, state = model(tokens, model.start(3))
    assert hidden.shape == (3, LENGTH + 1, model.config.width) and hidden.dtype == dtype
    assert model.head.nll(hidden, tokens).shape == tokens.shape
    log_probs = model.head.log_probs(hidden)
    assert log_probs.shape == (*tokens.shape, 256)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(tokens.shape, dtype=dtype))
    assert all(t.shape[0] == 3 for t in state.to_tensors().values() if t.ndim)
    assert all(t.dtype == dtype for t in state.to_tensors().values() if t.is_floating_point())


def test_causality(variant):
    model, tokens = build(variant), draw_tokens()
    changed = tokens.clone()
    changed[:, 40] = (changed[:, 40] + 1) % 256
    before, _ = model(tokens, model.start(3))
    after, _ = model(changed, model.start(3))
    assert before[:, :40].equal(after[:, :40])
    assert not before[:, 40:].equal(after[:, 40:])


@torch.no_grad()
@pytest.mark.parametrize("segment", [1, 5, 6])
def test_the_receptive_field_is_as_far_as_a_prediction_reaches(variant, segment):
    model = build(variant, torch.float64)
    field, period = model.spec(segment).receptive_field, math.lcm(segment, model.restarts_after or 1)
    length = (field or 20) // period * period + period  # the last prediction of a segment, and of a window

    def last(tokens):
        state = model.start(1)
        for begin in range(0, length, segment):
            hidden, state = model(tokens[:, begin : begin + segment], state)
        return hidden[:, -1]

    tokens = draw_tokens(1, length)
    farthest = length - (field or length)
    for changed, reached in ((slice(farthest, farthest + 1), True), (slice(0, farthest), False)):
        other = tokens.clone()
        other[:, changed] = (other[:, changed] + 1) % 256
        assert last(other).equal(last(tokens)) != reached


@pytest.mark.parametrize("gradients", [True, False], ids=["gradients", "no-gradients"])
@pytest.mark.parametrize("lengths", [[1] * LENGTH, [7, 1, 30, 2, 20], [20, 40], [LENGTH]], ids=str)
@pytest.mark.parametrize("batch", [1, 3])
def test_whole_is_chunked_is_byte_by_byte(variant, dtype, batch, lengths, gradients):
    model, tokens = build(variant, dtype), draw_tokens(batch)
    whole = nll_in_pieces(model, tokens, [LENGTH], gradients=True)
    pieces = nll_in_pieces(model, tokens, lengths, gradients=gradients)
    assert (whole - pieces).abs().max() <= BOUND[dtype]


def test_gradients_do_not_depend_on_the_cut_inside_a_graph(variant):
    """With the graph kept across calls, two halves give the gradients of the whole."""
    if variant["kind"] == "transformer-xl":
        return  # its memory is detached by definition: tests/models/test_transformer_xl.py
    model, tokens = build(variant, torch.float64), draw_tokens()

    def gradients(lengths):
        model.zero_grad()
        state, total, begin = model.start(3), 0.0, 0
        for length in lengths:
            hidden, state = model(tokens[:, begin : begin + length], state)
            total = total + model.head.nll(hidden, tokens[:, begin + 1 : begin + length + 1]).sum()
            begin += length
        total.backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    whole, halves = gradients([LENGTH]), gradients([25, 35])
    # What the objective alone needs lives apart.
    assert set(whole) == {name for name, _ in model.named_parameters() if not name.startswith("auxiliary.")}
    for name, gradient in whole.items():
        torch.testing.assert_close(gradient, halves[name], rtol=1e-8, atol=1e-8)


def test_rows_of_a_batch_do_not_see_each_other(variant):
    model, tokens = build(variant), draw_tokens()
    changed = tokens.clone()
    changed[1] = (changed[1] + 3) % 256
    before, _ = model(tokens, model.start(3))
    after, _ = model(changed, model.start(3))
    assert before[[0, 2]].equal(after[[0, 2]])
    alone, _ = model(tokens[:1], model.start(1))
    assert (alone - before[:1]).abs().max() <= 1e-5


def test_every_parameter_gets_a_gradient(variant):
    model = build(variant).train()
    loss, _ = model.objective(draw_tokens(length=LENGTH + model.lookahead), model.start(3), 0.0)
    loss.total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_overfits_a_kilobyte(variant):
    cls, config = configure(variant, 256)
    torch.manual_seed(0)
    model = cls(config)
    lanes = torch.tensor(list(make_text(1024))).view(16, 64)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(450):
        loss, _ = model.objective(lanes, model.start(16), step / 450)
        optimiser.zero_grad()
        loss.total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    assert loss.parts["nll"].item() / math.log(2) < 0.5  # its bytes take 3.5 bits each unless they are known by heart


def test_save_and_load_are_bit_equal(variant, dtype):
    model, tokens = build(variant, dtype), draw_tokens()
    tensors = safetensors.torch.load(safetensors.torch.save(model.state_dict()))
    copy = type(model).blank(model.config, dtype=dtype)
    copy.load_state_dict(tensors)
    state = model.start(3)
    for begin in (0, 30):
        _, state = model(tokens[:, begin : begin + 30], state)
        saved = safetensors.torch.load(safetensors.torch.save(state.to_tensors()))
        state_copy = copy.start(3).from_tensors(saved)
        for one, other in zip(state.to_tensors().values(), state_copy.to_tensors().values(), strict=True):
            assert one.equal(other)
    ours, _ = model(tokens[:, 30:60], state)
    theirs, _ = copy.eval()(tokens[:, 30:60], state_copy)
    assert ours.equal(theirs)


def test_finished_gives_the_same_nll_and_leaves_the_original(variant, dtype):
    model, tokens = build(variant, dtype), draw_tokens()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    finished = model.finished()
    ours = nll_in_pieces(model, tokens, [LENGTH], gradients=False)
    theirs = nll_in_pieces(finished, tokens, [LENGTH], gradients=False)
    assert (ours - theirs).abs().max() <= BOUND[dtype]
    assert all(before[name].equal(tensor) for name, tensor in model.state_dict().items())
    assert finished is not model and all(
        a.data_ptr() != b.data_ptr() for a, b in zip(model.parameters(), finished.parameters(), strict=False)
    )
    again = type(model)(finished.config)  # the Config says what the weights are
    again.load_state_dict(finished.state_dict())


def test_state_modes(variant):
    model, tokens = build(variant), draw_tokens()
    with torch.no_grad():
        _, without = model(tokens[:, :5], model.start(3))
    with pytest.raises(RuntimeError, match="gradients off"):
        model(tokens[:, 5:6], without)
    _, with_gradients = model(tokens[:, :5], model.start(3))
    with torch.no_grad():
        a, _ = model(tokens[:, 5:9], with_gradients.detach())
        b, _ = model(tokens[:, 5:9], without)
    assert (a - b).abs().max() <= 1e-5


def test_a_call_with_gradients_leaves_its_state_alone(variant):
    model, tokens = build(variant), draw_tokens()
    _, state = model(tokens[:, :30], model.start(3))
    before = {name: t.clone() for name, t in state.to_tensors().items()}
    model(tokens[:, 30:50], state)
    assert all(before[name].equal(t) for name, t in state.to_tensors().items())


@torch.no_grad()
@pytest.mark.parametrize(("batch", "length"), [(3, 10), (1, 1)])
def test_clone_branches(variant, batch, length):
    model, tokens = build(variant), draw_tokens(batch)
    _, state = model(tokens[:, :30], model.start(batch))
    _, state = model(tokens[:, 30:31], state)
    branch = state.clone()
    expected, _ = model(tokens[:, 31 : 31 + length], state.clone())
    model(tokens[:, 50 : 50 + length], state)
    again, _ = model(tokens[:, 31 : 31 + length], branch)
    assert expected.equal(again)


@torch.no_grad()
def test_a_single_byte_is_read_with_the_weights_of_its_moment(variant):
    model, tokens = build(variant), draw_tokens(1)
    before, _ = model(tokens[:, :1], model.start(1))
    for parameter in model.parameters():
        parameter.data.mul_(0.9)  # behind autograd's back
    after, _ = model(tokens[:, :1], model.start(1))
    with torch.enable_grad():
        expected, _ = model(tokens[:, :1], model.start(1))
    assert not torch.allclose(before, after) and (after - expected).abs().max() <= 1e-5


@torch.no_grad()
def test_select_takes_streams(variant):
    model, tokens = build(variant), draw_tokens()
    _, state = model(tokens[:, :30], model.start(3))
    some = state.clone().select(torch.tensor([2, 0]))
    expected, _ = model(tokens[:, 30:40], state)
    selected, _ = model(tokens[[2, 0], 30:40], some)
    assert (expected[[2, 0]] - selected).abs().max() <= 1e-5


def test_window_can_be_overridden(variant):
    model, tokens = build(variant), draw_tokens()
    if not model.heads or variant.get("memory_start") == "zeros":  # as many rows of zeros are seen as the window has
        return
    wide, _ = model(tokens, model.start(3, window=1000))
    narrow, _ = model(tokens[:, :3], model.start(3, window=3))
    own, _ = model(tokens, model.start(3))
    assert (wide[:, :3] - narrow).abs().max() <= 1e-5
    if model.restarts_after:  # there are no positions beyond the context
        assert wide.equal(own)
        own, _ = model(tokens, model.start(3, window=7))
    if variant.get("window_rule", "exact") == "exact":
        assert not torch.allclose(wide[:, -1], own[:, -1])


@torch.no_grad()
def test_flops_and_state_bytes(variant):
    segment = 16
    model = build(variant)
    spec = model.spec(segment)
    tokens = draw_tokens(batch=2, length=200)
    state = model.start(2)
    for begin in range(0, 112, segment):
        _, state = model(tokens[:, begin : begin + segment], state)
    if model.restarts_after:
        assert (112 + segment) % model.restarts_after == 0  # the call that is counted fills a window
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        hidden, state = model(tokens[:, 112 : 112 + segment], state)
        model.head.nll(hidden, tokens[:, 112 : 112 + segment])
    counted = counter.get_total_flops() / (2 * segment)
    assert counted == pytest.approx(spec.flops - spec.recurrent_flops, rel=0.05)
    lstms = 3 if variant["kind"] == "sha-rnn" else 0
    assert spec.recurrent_flops == lstms * 2 * 4 * 2 * 24 * 24  # four gates, two D × D matrices each
    if model.restarts_after:  # a full window may leave nothing behind
        _, state = model(tokens[:, : model.restarts_after - 1], model.start(2))
    carried = [t for t in state.to_tensors().values() if t.ndim]
    assert sum(t.numel() * t.element_size() for t in carried) / 2 == spec.state_bytes
    assert state.nbytes / 2 >= spec.state_bytes


def test_spec_counts_without_allocating(variant):
    cls, config = configure(variant, 256)
    with torch.device("meta"):
        spec = cls(config).spec()
    model = cls(config)
    assert spec.parameters == sum(p.numel() for p in model.parameters())
    assert spec.parameters_in_use == sum(p.numel() for p in model.finished().parameters())


def test_bfloat16_autocast_keeps_the_state_in_float32(variant):
    model, tokens = build(variant), draw_tokens()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, state = model.objective(tokens, model.start(3), 0.0)
        assert loss.parts["nll"].dtype == torch.float32
        loss.total.backward()
        _, state = model(tokens, state.detach())
    assert all(t.dtype == torch.float32 for t in state.to_tensors().values() if t.is_floating_point())


def test_config_is_frozen_and_keyword_only(variant):
    cls, config = configure(variant, 256)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.width = 3
    with pytest.raises(TypeError):
        cls.Config(256)


def test_look_back_is_a_distribution_over_what_was_seen(variant):
    model, tokens = build(variant), draw_tokens()
    if not model.heads:
        return
    _, state = model(tokens[:, :7], model.start(3))
    weights, after = model.look_back(tokens[:, 7:47], state.detach())
    assert len(weights) == model.heads
    for head in weights:
        assert head.shape[:2] == (3, 40) and head.shape[2] >= 40
        torch.testing.assert_close(head.sum(-1), torch.ones(3, 40))
        newest = head.shape[2] - 40
        assert all((head[:, t, newest + t + 1 :] == 0).all() for t in range(40))
    expected, _ = model(tokens[:, 7:47], state.detach())
    assert expected.shape[1] == 40 and not after.without_gradients


@pytest.mark.parametrize("vocabulary", [27, 1_003])
def test_the_laws_hold_for_any_vocabulary(variant, vocabulary):
    """Tokens need not be bytes: a distribution over all symbols, whole = chunked, gradients, save and load."""
    if variant.get("cutoffs", [0])[-1] >= vocabulary:
        variant = {**variant, "cutoffs": [10, 20]}
    model = build(variant, torch.float64, vocabulary)
    tokens = draw_tokens(length=LENGTH + 1, vocabulary=vocabulary)
    tokens[0, :2] = torch.tensor([0, vocabulary - 1])
    hidden, _ = model(tokens, model.start(3))
    log_probs = model.head.log_probs(hidden)
    assert log_probs.shape == (*tokens.shape, vocabulary)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(tokens.shape, dtype=torch.float64))
    torch.testing.assert_close(model.head.nll(hidden, tokens), -log_probs.gather(-1, tokens[..., None])[..., 0])
    whole = nll_in_pieces(model, tokens, [LENGTH], gradients=True)
    for lengths in ([1] * LENGTH, [7, 1, 30, 2, 20]):
        assert (whole - nll_in_pieces(model, tokens, lengths, gradients=False)).abs().max() <= 1e-10
    copy = type(model).blank(model.config, dtype=torch.float64)
    copy.load_state_dict(safetensors.torch.load(safetensors.torch.save(model.state_dict())))
    assert nll_in_pieces(copy.eval(), tokens, [LENGTH], gradients=True).equal(whole)
    assert (nll_in_pieces(model.finished(), tokens, [LENGTH], gradients=True) - whole).abs().max() <= 1e-10
    more = draw_tokens(length=LENGTH + model.lookahead, vocabulary=vocabulary)
    loss, _ = model.train().objective(more, model.start(3), 0.0)
    loss.total.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    with torch.device("meta"):
        assert type(model)(model.config).spec().parameters == sum(p.numel() for p in model.parameters())

"""The losses of a deep character Transformer: every part by hand, each of their switches, when each ends."""

import pytest
import torch

from headcount.learn import optimisers
from headcount.models.char_transformer import CharTransformerConfig, predictions
from headcount.models.contract import count_parameters
from headcount.tables import AdamWTable, MinTrustLambTable, SgdTable
from tests.models.test_char_transformer import build, draw, hidden_of_every_layer


def test_the_objective_is_its_parts_by_hand():
    model, tokens = build(), draw(16 + 2)
    loss, _ = model.objective(tokens, model.start(2), 0.0)
    expected = {}
    for number, hidden in enumerate(hidden_of_every_layer(model, tokens[:, :16]), start=1):
        first, second = ("nll", "second") if number == 3 else (f"layer {number}", f"layer {number} second")
        head = model.head if number == 3 else model.auxiliary[first]
        expected[first] = head.nll(hidden, tokens[:, 1:17]).mean()
        expected[second] = model.auxiliary[second].nll(hidden, tokens[:, 2:18]).mean()
    assert set(loss.parts) == set(expected) == set(loss.weights)
    assert all((loss.parts[name] - value).abs() < 1e-12 for name, value in expected.items())
    assert loss.weights == {name: 0.5 if "second" in name else 1.0 for name in expected}
    total = sum(value * loss.weights[name] for name, value in expected.items())
    assert (loss.total - total).abs() < 1e-12
    learnt = list(model.parameters())
    ours, theirs = torch.autograd.grad(loss.total, learnt), torch.autograd.grad(total, learnt)
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(ours, theirs, strict=True))


def test_without_auxiliary_losses_it_is_a_plain_language_model():
    model, tokens = build(intermediate_losses=False, second_target=False), draw(18)
    assert not model.auxiliary
    loss, _ = model.objective(tokens, model.start(2), 0.0)
    hidden, _ = model(tokens[:, :16], model.start(2))
    assert set(loss.parts) == {"nll"} and loss.weights == {"nll": 1.0}
    assert (loss.total - model.head.nll(hidden, tokens[:, 1:17]).mean()).abs() < 1e-12


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"second_target": False}, ["nll", "layer 1", "layer 2"]),
        ({"intermediate_losses": False}, ["nll", "second"]),
        ({"finished": True}, ["nll"]),
    ],
    ids=str,
)
def test_each_loss_has_a_switch_and_no_classifier_without_it(settings, parts):
    model = build(**settings)
    loss, _ = model.objective(draw(18), model.start(2), 0.0)
    assert set(loss.parts) == set(parts) == {*model.auxiliary, "nll"}


def test_the_last_position_alone():
    model, tokens = build(every_position=False), draw(18)
    loss, _ = model.objective(tokens, model.start(2), 0.0)
    hidden = hidden_of_every_layer(model, tokens[:, :16])
    assert (loss.parts["nll"] - model.head.nll(hidden[2], tokens[:, 1:17])[:, -1].mean()).abs() < 1e-12
    lower = model.auxiliary["layer 1 second"].nll(hidden[0], tokens[:, 2:18])[:, -1].mean()
    assert (loss.parts["layer 1 second"] - lower).abs() < 1e-12


@pytest.mark.parametrize(("progress", "layers"), [(0.0, 3), (0.2, 2), (0.4, 1), (1.0, 1)])
def test_the_mean_over_layers_counts_those_that_are_active(progress, layers):
    by_sum, by_mean = (build(layer_reduction=how) for how in ("sum", "mean"))
    one, _ = by_sum.objective(draw(18), by_sum.start(2), progress)
    other, _ = by_mean.objective(draw(18), by_mean.start(2), progress)
    assert (one.total / layers - other.total).abs() < 1e-12
    assert one.parts["nll"] == other.parts["nll"]  # what is reported is not scaled


@pytest.mark.parametrize(("layers", "steps"), [(64, 4_000_000), (12, 8_000_000), (3, 12), (1, 5)])
def test_layers_stop_at_their_share_of_training(layers, steps):
    config = CharTransformerConfig(layers=layers)

    def active(step):
        return {p.layer for p in predictions(config, step / steps)}

    for layer in range(1, layers):
        ends = -(-steps * layer // (2 * layers))  # the first step that is not below steps·l/2n
        assert layer in active(ends - 1) and layer not in active(ends)
    assert active(0) == set(range(1, layers + 1))
    assert active(-(-steps // 2)) == active(steps) == {layers}
    assert layers in active(steps // 2 - 1)


@pytest.mark.parametrize("table", [SgdTable(), AdamWTable(), MinTrustLambTable()], ids=lambda table: table.kind)
def test_retired_classifiers_do_not_move(table):
    model, steps = build().float(), 12
    optimiser = optimisers.build(table, model)
    kept = {}
    for step in range(steps):
        made = {p.name for p in predictions(model.config, step / steps)}
        for name in model.auxiliary.keys() - made - kept.keys():
            kept[name] = [p.detach().clone() for p in model.auxiliary[name].parameters()]
        before = {name: classifier.weight.detach().clone() for name, classifier in model.auxiliary.items()}
        optimiser.zero_grad(set_to_none=True)
        loss, _ = model.objective(draw(18, seed=step), model.start(2), step / steps)
        loss.total.backward()
        optimiser.step()
        assert all(p.grad is None for name in kept for p in model.auxiliary[name].parameters())
        assert all(not before[name].equal(model.auxiliary[name].weight) for name in made - {"nll"})
    assert set(kept) == {"layer 1", "layer 1 second", "layer 2", "layer 2 second"}
    for name, values in kept.items():
        assert all(a.equal(b) for a, b in zip(values, model.auxiliary[name].parameters(), strict=True))
    moving = model.auxiliary["layer 1"].weight  # the comparison can fail: a gradient of zero does move it
    moving.grad = torch.zeros_like(moving)
    optimiser.step()
    assert not moving.equal(kept["layer 1"][0])


def test_finished_keeps_one_classifier_and_says_so():
    model = build()
    finished = model.finished()
    assert finished.config.finished and not model.config.finished and not finished.auxiliary
    assert count_parameters(model) - count_parameters(finished) == 5 * (40 * 12 + 40)
    assert {f"auxiliary.{name}" for name in ("second", "layer 2")} <= {n for n, _ in model.named_modules()}
    with pytest.raises(RuntimeError):
        model.load_state_dict(finished.state_dict())  # never silently wrong
    assert finished.finished().config.finished


@pytest.mark.parametrize("training", [True, False])
def test_finished_stays_in_training_or_in_use(training):
    model = build(dropout=0.5).train(training)
    assert model.finished().training is training
    assert all(module.training is training for module in model.finished().modules())


def test_the_last_position_of_every_window():
    model, tokens = build(every_position=False), draw(40 + 2)
    loss, _ = model.objective(tokens, model.start(2), 0.0)
    hidden, _ = model(tokens[:, :40], model.start(2))
    nll = model.head.nll(hidden, tokens[:, 1:41])
    assert (loss.parts["nll"] - nll[:, [15, 31, 39]].mean()).abs() < 1e-12


def test_no_layers_logits_wait_for_the_backward_pass():
    model, shapes = build(vocabulary=1000), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (shapes.append(t.shape), t)[1], lambda t: t):
        model.objective(draw(18), model.start(2), 0.0)
    assert shapes and all(shape.numel() < 2 * 16 * 1000 for shape in shapes)

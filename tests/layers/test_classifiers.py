"""Mean nats under several classifiers: torch's own, whatever they are differentiated by, and no logits kept."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headcount.layers import classifiers
from headcount.layers.classifiers import mean_nats
from headcount.layers.heads import Softmax


def drawn(rows=10, vocabulary=11, width=4):
    torch.manual_seed(0)
    heads = [Softmax(vocabulary, width).double() for _ in range(2)]
    for head in heads:
        torch.nn.init.normal_(head.weight)
        torch.nn.init.normal_(head.bias)
    hidden = torch.randn(2, rows, width, dtype=torch.float64, requires_grad=True)
    return hidden, heads, [torch.randint(0, vocabulary, (2, rows)) for _ in heads]


@pytest.mark.parametrize("upper", [(1.0, 0.5), (0.25, 0.125), (1.0, 0.0), (0.0, 1.0), (1.0, 0.7)], ids=str)
def test_means_and_gradients_are_torchs(upper, monkeypatch):
    monkeypatch.setattr(classifiers, "ROWS", 7)  # 20 rows: the last slice is shorter
    hidden, heads, targets = drawn()
    learnt = [hidden, *(p for head in heads for p in head.parameters())]
    found = mean_nats(hidden, heads, targets, (1.0, 0.5))
    expected = torch.stack([head.nll(hidden, each).mean() for head, each in zip(heads, targets, strict=True)])
    assert (found - expected).abs().max() < 1e-12
    with torch.no_grad():
        assert (mean_nats(hidden, heads, targets, (1.0, 0.5)) - expected).abs().max() < 1e-12
    ours, theirs = (
        torch.autograd.grad(means, learnt, torch.tensor(upper, dtype=torch.float64)) for means in (found, expected)
    )
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(ours, theirs, strict=True))


def test_the_usual_proportion_works_through_the_rows_once(monkeypatch):
    calls = []
    real = classifiers._work_through
    monkeypatch.setattr(classifiers, "_work_through", lambda *given: (calls.append(1), real(*given))[1])
    for upper, times in (((3.0, 1.5), 1), ((3.0, 1.0), 2)):
        calls.clear()
        mean_nats(*drawn(), (1.0, 0.5)).backward(torch.tensor(upper, dtype=torch.float64))
        assert len(calls) == times


def test_no_logit_is_kept():
    hidden, heads, targets = drawn(rows=500, vocabulary=300)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t.shape), t)[1], lambda t: t):
        mean_nats(hidden, heads, targets, (1.0, 0.5))
    assert (1000, 4) in kept and all(shape.numel() < 1000 * 300 for shape in kept)


class _Largest(TorchDispatchMode):
    """The most rows of logits that were one tensor, at any moment."""

    rows = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for made in out if isinstance(out, tuple | list) else (out,):
            if isinstance(made, torch.Tensor) and made.ndim == 2 and made.shape[1] == 300:
                self.rows = max(self.rows, made.shape[0])
        return out


@pytest.mark.parametrize("upper", [(1.0, 0.5), (1.0, 0.7)], ids=str)
def test_logits_live_for_a_slice_of_rows_at_a_time(upper):
    hidden, heads, targets = drawn(rows=2_500, vocabulary=300)
    with _Largest() as largest:
        mean_nats(hidden, heads, targets, (1.0, 0.5)).backward(torch.tensor(upper, dtype=torch.float64))
    assert 0 < largest.rows <= 1_024

"""Sliding windows against a loop that reads every window anew, byte by byte."""

import numpy as np
import pytest
import torch

from headcount.errors import RequestError
from headcount.measure.protocols import find, measure
from headcount.measure.sliding import score_sliding
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.tables import EvaluateTable
from tests.conftest import as_bytes, make_text

CONTEXT = 20


@pytest.fixture
def model():
    torch.manual_seed(1)
    return ShaRnn(ShaRnnConfig(width=16, blocks=2, attention=(0,), window=50)).double().eval()


def text(size):
    return np.frombuffer(make_text(size), dtype=np.uint8)


@torch.no_grad()
def one_by_one(model, data, stride, **limits):
    """Nats of byte t from an empty state that was fed what the definition says, and nothing else."""
    fed, nats = [10, *data.tolist()], []
    for t in range(len(data)):
        if t < CONTEXT:
            first = 0
        else:
            last = CONTEXT + ((t - CONTEXT) // stride + 1) * stride  # the window that scores t ends before this byte
            first = min(last, len(data)) - CONTEXT
        hidden, _ = model(torch.tensor([fed[first : t + 1]]), model.start(1, **limits))
        nats.append(model.head.nll(hidden[:, -1:], torch.tensor([[int(data[t])]])).item())
    return np.array(nats)


@pytest.mark.parametrize("stride", [1, 3, 7, 20])
@pytest.mark.parametrize("size", [1, 19, 20, 21, 60, 83])
def test_sliding_is_what_it_says(model, stride, size):
    data = text(size)
    found = np.concatenate(list(score_sliding(model, data, start=10, context=CONTEXT, stride=stride)))
    assert found.shape == (size,) and np.abs(found - one_by_one(model, data, stride)).max() < 1e-9


def test_many_windows_at_once_are_as_good_as_one(model, monkeypatch):
    data = text(300)
    many = np.concatenate(list(score_sliding(model, data, start=10, context=CONTEXT, stride=2)))
    monkeypatch.setattr("headcount.measure.sliding.FED_AT_ONCE", 1)
    single = np.concatenate(list(score_sliding(model, data, start=10, context=CONTEXT, stride=2)))
    assert np.abs(many - single).max() < 1e-9


def test_the_protocols_say_how_they_slid(model):
    how = EvaluateTable(protocol="sliding-5", window=CONTEXT)
    measured = measure(model, as_bytes(text(100)), how)
    assert measured.bytes == 100 and measured.protocol["stride"] == 5 and measured.protocol["window"] == CONTEXT
    assert measured.protocol["state"] == "recomputed" and measured.protocol["cold_starts"] == 17
    by_name = measure(model, as_bytes(text(100)), EvaluateTable(protocol="alrfou2018", window=CONTEXT))
    by_stride = measure(model, as_bytes(text(100)), EvaluateTable(protocol="sliding-1", window=CONTEXT))
    assert by_name.nats == by_stride.nats and by_name.protocol["stride"] == 1
    assert measure(model, as_bytes(text(100)), EvaluateTable(protocol="sliding-5")).protocol["window"] == 50


@pytest.mark.parametrize("name", ["sliding-0", "sliding--1", "sliding-x", "sliding-", "sliding-5.0"])
def test_a_stride_is_a_number_from_1(name):
    with pytest.raises(RequestError, match="protocol"):
        find(name)


def test_a_stride_beyond_the_window_is_refused(model):
    with pytest.raises(RequestError, match="window of 20 is shorter"):
        measure(model, as_bytes(text(100)), EvaluateTable(protocol="sliding-21", window=CONTEXT))
    with pytest.raises(RequestError, match="no clamp"):
        measure(model, as_bytes(text(100)), EvaluateTable(clamp=3))


def transformer_xl(window):
    torch.manual_seed(0)
    config = TransformerXLConfig(width=16, layers=2, heads=2, inner=16, window=window, init_std=0.3)
    return TransformerXL(config).double().eval()


@pytest.mark.parametrize("limits", [{"window": 15}, {"clamp": 3}, {"window": 15, "clamp": 3}], ids=str)
def test_limits_reach_every_window(limits):
    xl, data, stride = (
        transformer_xl(window=6),
        text(80),
        7,
    )  # the first window, eight more, and one for the four bytes that are left
    found = np.concatenate(list(score_sliding(xl, data, start=10, context=CONTEXT, stride=stride, limits=limits)))
    assert np.abs(found - one_by_one(xl, data, stride, **limits)).max() < 1e-9
    own = one_by_one(xl, data, stride)
    for part in (slice(CONTEXT), slice(CONTEXT, -4), slice(-4, None)):  # each kind of window feels them
        assert np.abs(found - own)[part].max() > 1e-4


def test_figures_name_their_limits_and_what_has_no_meaning_is_refused(model):
    xl, data, clamped = transformer_xl(window=CONTEXT), text(100), EvaluateTable(protocol="sliding-5", clamp=3)
    own, other = measure(xl, as_bytes(data), EvaluateTable(protocol="sliding-5")), measure(xl, as_bytes(data), clamped)
    assert other.protocol["clamp"] == 3 and "clamp" not in own.protocol
    for measured, limits in ((own, {}), (other, {"clamp": 3})):
        assert measured.nats == pytest.approx(one_by_one(xl, data, 5, **limits).sum(), abs=1e-9)
    with pytest.raises(RequestError, match="whole windows"):
        measure(model, as_bytes(data), EvaluateTable(protocol="sliding-5", segment=4))

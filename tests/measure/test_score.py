"""Scores and protocols: N bytes are N predictions; how a text is cut does not matter; cold starts do."""

import math

import numpy as np
import pytest
import torch

from headcount.errors import RequestError
from headcount.measure.figure import Figure
from headcount.measure.protocols import PROTOCOLS, measure
from headcount.measure.score import score, score_lanes
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.tables import EvaluateTable
from tests.conftest import as_bytes, make_text


@pytest.fixture(params=["exact", "segment"])
def model(request):
    torch.manual_seed(1)
    return ShaRnn(ShaRnnConfig(width=16, blocks=2, attention=(0,), window=2000, window_rule=request.param)).double()


def text(size=700):
    return np.frombuffer(make_text(size), dtype=np.uint8)


def test_every_byte_has_a_probability_given_all_before_it(model):
    data = text()
    found = np.concatenate(list(score(model, data, start=10)))
    tokens = torch.tensor(np.concatenate([[10], data]).astype(np.int64))[None]
    hidden, _ = model.eval()(tokens[:, :-1], model.start(1))
    expected = model.head.nll(hidden, tokens[:, 1:])[0].detach().numpy()
    assert found.shape == (700,) and np.abs(found - expected).max() < 1e-10


def test_the_cut_does_not_change_an_exact_score():
    torch.manual_seed(1)
    model = ShaRnn(ShaRnnConfig(width=16, blocks=2, attention=(0,), window=50)).double()
    data = text()[None]
    wholes = np.concatenate(list(score_lanes(model, data, start=10, segment=700)), axis=1)
    for segment in (1, 33, 512):
        pieces = np.concatenate(list(score_lanes(model, data, start=10, segment=segment)), axis=1)
        assert np.abs(wholes - pieces).max() < 1e-10


def test_scoring_leaves_the_model_as_it_was(model):
    model.train()
    list(score(model, text(), start=10))
    assert model.training and all(p.requires_grad for p in model.parameters())


def test_carried_sums_nats_and_divides_by_bytes(model):
    data = text()
    measured = measure(model, as_bytes(data), EvaluateTable(protocol="carried"))
    nats = np.concatenate(list(score(model, data, start=10)))
    assert measured.bytes == 700 and measured.nats == pytest.approx(nats.sum(), rel=1e-12)
    assert measured.bits_per_byte == pytest.approx(nats.mean() / math.log(2), rel=1e-12)
    assert measured.protocol["not_scored"] == 0 and measured.protocol["cold_starts"] == 1


@pytest.mark.parametrize(
    ("split", "heads", "streams"), [("valid", 1, 16), ("valid", 4, 8), ("test", 1, 8), ("test", 4, 8)]
)
def test_merity2019_has_the_published_streams(split, heads, streams):
    model = ShaRnn(ShaRnnConfig(width=8, blocks=4, attention=tuple(range(heads)), window=1500))
    data = text(1000)
    measured = measure(model, as_bytes(data), EvaluateTable(protocol="merity2019"), split=split)
    length = 1000 // streams
    assert measured.protocol["streams"] == streams
    assert measured.bytes == streams * (length - 1)  # first bytes are fed, not scored; the remainder is dropped
    assert measured.protocol["not_scored"] == 1000 - measured.bytes
    lanes = data[: streams * length].reshape(streams, length)
    expected = 0.0
    for lane in lanes:
        tokens = torch.tensor(lane.astype(np.int64))[None]
        hidden, _ = model.eval()(tokens[:, :-1], model.start(1))
        expected += model.head.nll(hidden, tokens[:, 1:]).sum().item()
    assert measured.nats == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("given", [{}, {"segment": 16, "window": 7, "clamp": 5}], ids=["its own", "given"])
def test_dai2019_is_ten_streams_with_exact_windows(given):
    torch.manual_seed(2)
    sizes = {"width": 16, "layers": 2, "inner": 32, "window": 20, "window_rule": "memory", "init_std": 0.3}
    model = TransformerXL(TransformerXLConfig(**sizes)).double().eval()
    data = text(1_609)
    measured = measure(model, as_bytes(data), EvaluateTable(protocol="dai2019", **given), split="test")
    lanes = torch.tensor(data[:1_600].astype(np.int64)).view(10, 160)
    state = model.start(10, given.get("window"), given.get("clamp"), rule="exact")
    expected, segment = 0.0, given.get("segment", 128)
    for begin in range(0, 159, segment):
        inputs, targets = lanes[:, begin : begin + segment][:, : 159 - begin], lanes[:, begin + 1 : begin + segment + 1]
        hidden, state = model(inputs, state)
        expected += model.head.nll(hidden, targets).sum().item()
    assert measured.nats == pytest.approx(expected, rel=1e-10)
    assert measured.bytes == 10 * 159  # first bytes are fed, not scored; the remainder is dropped
    assert measured.protocol == {
        "name": "dai2019",
        "streams": 10,
        "segment": segment,
        "window": given.get("window", 20),
        "window_rule": "exact",
        **({"clamp": 5} if given else {}),
        "state": "carried",
        "cold_starts": 10,
        "not_scored": 10 + 9,
    }


def test_protocols_that_cannot_be_are_refused(model):
    with pytest.raises(RequestError, match="did you mean 'carried'"):
        measure(model, as_bytes(text()), EvaluateTable(protocol="caried"))
    with pytest.raises(RequestError, match="too few"):
        measure(model, as_bytes(text(20)), EvaluateTable(protocol="merity2019"), split="valid")
    short = ShaRnn(ShaRnnConfig(width=8, window=64, window_rule="segment"))
    with pytest.raises(RequestError, match="segments of 1024"):
        measure(short, as_bytes(text()), EvaluateTable(protocol="merity2019"))
    assert measure(short, as_bytes(text()), EvaluateTable(protocol="carried")).protocol["segment"] == 64


def test_a_figure_is_never_printed_without_its_protocol(model):
    measured = measure(model, as_bytes(text()), EvaluateTable(protocol="carried", window=30))
    corpus = {"name": "mine", "split": "valid", "sha256": measured.sha256, "bytes": 700}
    facts = {"kind": "sha-rnn", "parameters": 1, "step": 3, "sha256": "f" * 64}
    figure = Figure.of(measured, corpus=corpus, model=facts, command="headcount evaluate x")
    assert figure.value == measured.bits_per_byte
    for part in ("bits per byte", "carried", "1 stream", "window 30", "mine valid", "700 bytes", "step 3", "f" * 12):
        assert part in str(figure)
    assert figure.to_dict()["protocol"]["window"] == 30


def test_a_model_without_a_head_has_no_window():
    config = {"width": 8, "blocks": 1, "window": 30}
    for attention, window, rule in (((), None, None), ((0,), 30, "exact")):
        model = ShaRnn(ShaRnnConfig(**config, attention=attention))
        protocol = measure(model, as_bytes(text(200)), EvaluateTable(protocol="carried")).protocol
        assert (protocol["window"], protocol["window_rule"]) == (window, rule)
    headless = ShaRnn(ShaRnnConfig(**config, attention=()))
    with pytest.raises(RequestError, match="window = 7: this model has no head"):
        measure(headless, as_bytes(text(200)), EvaluateTable(protocol="carried", window=7))
    sliding = measure(headless, as_bytes(text(200)), EvaluateTable(protocol="sliding-7", window=7)).protocol
    assert (sliding["window"], sliding["stride"]) == (7, 7)


def test_every_protocol_is_described():
    assert all(protocol.about for protocol in PROTOCOLS.values())

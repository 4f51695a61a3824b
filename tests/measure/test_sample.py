"""Generation: the same seed gives the same bytes; the state is the text; limits on what is drawn hold."""

from itertools import islice

import numpy as np
import pytest
import torch

from headcount.errors import RequestError
from headcount.measure.sample import Sampling, choose, sample
from headcount.models.sha_rnn import ShaRnn, ShaRnnConfig


@pytest.fixture
def model():
    torch.manual_seed(2)
    return ShaRnn(ShaRnnConfig(width=16, blocks=2, attention=(0,), window=20))


def take(model, prompt, count, **how):
    return bytes(islice(sample(model, prompt, Sampling(**how), start=10), count))


def test_seeds(model):
    assert take(model, b"x", 50, seed=1) == take(model, b"x", 50, seed=1) != take(model, b"x", 50, seed=2)
    assert take(model, b"x", 30, seed=1) == take(model, b"x", 50, seed=1)[:30]


@pytest.mark.parametrize("prompt", [b"", b"a", bytes(range(256)) * 5])
def test_the_likeliest_byte_is_that_of_the_whole_text(model, prompt):
    written = take(model, prompt, 40, temperature=0)
    text = prompt
    for byte in written:
        tokens = torch.tensor([10, *text])[None]
        hidden, _ = model.eval()(tokens, model.start(1))
        assert model.head.log_probs(hidden)[0, -1].argmax().item() == byte
        text += bytes([byte])


def test_choose():
    log_probs = np.log(np.array([0.1, 0.5, 0.15, 0.25]))
    assert choose(log_probs, Sampling(temperature=0), 0.99) == 1
    assert [choose(log_probs, Sampling(), u) for u in (0.0, 0.49, 0.51, 0.74, 0.76, 0.89, 0.91, 0.999999)] == [
        1,
        1,
        3,
        3,
        2,
        2,
        0,
        0,
    ]
    draws = np.linspace(0, 0.9999, 500)
    assert {choose(log_probs, Sampling(top_k=2), u) for u in draws} == {1, 3}
    assert {choose(log_probs, Sampling(top_p=0.6), u) for u in draws} == {1, 3}
    assert {choose(log_probs, Sampling(top_p=0.5), u) for u in draws} == {1}
    assert {choose(log_probs, Sampling(temperature=1e-9), u) for u in draws} == {1}
    counts = np.bincount([choose(log_probs, Sampling(temperature=2.0), u) for u in draws], minlength=4) / 500
    expected = np.exp(log_probs / 2) / np.exp(log_probs / 2).sum()
    assert np.abs(counts - expected).max() < 0.01


@pytest.mark.parametrize(
    "how",
    [{"temperature": -1}, {"temperature": float("nan")}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.1}, {"seed": -1}],
)
def test_wrong_numbers_are_refused(how):
    with pytest.raises(RequestError):
        Sampling(**how)


def test_autograd_stays_on_for_the_caller_between_bytes(model):
    written = sample(model, b"", Sampling(), start=10)
    next(written)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()

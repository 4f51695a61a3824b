"""Sines and cosines of distances, number by number."""

import math

import pytest
import torch

from headcount.layers.positions import frequencies, sinusoid


@pytest.mark.parametrize("width", [2, 6, 64])
def test_the_equation_number_by_number(width):
    frequency, distances = frequencies(width), [0, 1, 7, 4_095]
    assert frequency.dtype == torch.float64 and frequency.shape == (width // 2,)
    waves = sinusoid(torch.tensor(distances), frequency)
    assert waves.shape == (len(distances), width)
    for row, distance in enumerate(distances):
        for t in range(width // 2):
            angle = distance * 10_000 ** (-2 * t / width)
            assert waves[row, t] == pytest.approx(math.sin(angle), abs=1e-12)
            assert waves[row, width // 2 + t] == pytest.approx(math.cos(angle), abs=1e-12)


def test_narrow_frequencies_do_not_make_narrow_positions():
    distances = torch.arange(4_000)
    for given in (distances, distances.bfloat16()):
        assert sinusoid(given, frequencies(64).bfloat16()).dtype == torch.float32
    precise = sinusoid(distances, frequencies(64).float())
    assert len(precise.unique(dim=0)) == 4_000 > len(distances.bfloat16().unique())
    assert (precise.double() - sinusoid(distances, frequencies(64))).abs().max() < 1e-3

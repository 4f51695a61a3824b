"""When a difference counts: by Student's quantiles, so that two values prove little."""

import numpy as np
import pytest

from headcount.claims.evidence import is_sure, margin, plus_minus, standard_error, student

PUBLISHED = {1: 12.706, 2: 4.303, 3: 3.182, 5: 2.571, 10: 2.228, 11: 2.201, 12: 2.179, 15: 2.131, 20: 2.086}
PUBLISHED |= {30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980, 1_000: 1.962, 10**9: 1.960}


@pytest.mark.parametrize(("freedom", "quantile"), PUBLISHED.items())
def test_quantiles_are_those_of_every_table(freedom, quantile):
    assert student(freedom) == pytest.approx(quantile, abs=6e-4)


def test_of_means_of_nothing_one_in_twenty_is_called_sure_however_few_the_values():
    draw = np.random.default_rng(0)
    for count in (2, 3, 6, 30):
        samples = draw.normal(size=(4_000, count))
        sure = [is_sure(float(values.mean()), standard_error(values), count) for values in samples]
        assert np.mean(sure) == pytest.approx(0.05, abs=0.012), count


def test_one_value_has_no_error_and_nothing_is_sure_without():
    assert standard_error(np.array([1.0])) is None and standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)
    assert not is_sure(99.0, None, 50) and not is_sure(99.0, 0.0, 1) and margin(None, 50) == float("inf")
    assert is_sure(-2.0, 0.99, 61) and not is_sure(2.0, 1.0, 60) and plus_minus(None) == "± unknown"

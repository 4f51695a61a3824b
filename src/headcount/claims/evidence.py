"""When a difference counts: it lies beyond what chance gives to a mean of so few values.

A mean of n values with the standard error s (estimated from the same values) is sure not to be 0 if it lies beyond
t · s, with t the two-sided 95 % quantile of Student's distribution of n - 1 degrees of freedom: 12.7 for two values,
2.6 for six, 1.96 for very many. Twice the error would call one difference of ten real where there are only three.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

_FEW = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""The quantiles of 1 to 10 degrees of freedom."""
_NORMAL = NormalDist().inv_cdf(0.975)


def student(freedom: int) -> float:
    """The two-sided 95 % quantile: from a table, then by an expansion around the normal one, to 1e-4."""
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def standard_error(values: npt.ArrayLike) -> float | None:
    """Of a mean; of fewer than two values none is known."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else None


def margin(error: float | None, count: int) -> float:
    """How far from 0 a mean of so many values may lie by chance; without an error anything may."""
    return float("inf") if error is None or count < 2 else student(count - 1) * error


def is_sure(value: float, error: float | None, count: int) -> bool:
    """Whether a mean of so many values is not 0, beyond its error."""
    return abs(value) > margin(error, count)


def plus_minus(error: float | None, form: str = ".3f", over: float = 1.0) -> str:
    """An error as it is shown beside its value."""
    return "± unknown" if error is None else f"± {error / over:{form}}"

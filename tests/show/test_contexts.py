"""Curves as rows of a table."""

from headcount.show.contexts import rows
from headcount.use.context import Curve, Curves


def test_what_rounds_to_nothing_has_no_sign():
    curve = Curve("runs/a", {}, (-1e-9, -0.25, 2.0), errors=(0.0, 0.125, 1.0))
    made = Curves("distance", "bits", "about", (1, 2, 4_096), "begins anew after", {}, (curve,))
    assert rows(made) == [["1", "0.0000 ± 0.0000"], ["2", "-0.2500 ± 0.1250"], ["4,096", "2.0000 ± 1.0000"]]

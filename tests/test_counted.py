"""Numbers and what they count."""

from headcount.counted import counted, in_seconds


def test_one_is_not_many():
    assert [counted(n, "byte") for n in (0, 1, 2, 1_200)] == ["0 bytes", "1 byte", "2 bytes", "1,200 bytes"]


def test_a_short_time_is_not_nothing():
    assert [in_seconds(s) for s in (0.04, 0.44, 9.94, 9.96, 1_234.5)] == ["0.0", "0.4", "9.9", "10", "1,234"]

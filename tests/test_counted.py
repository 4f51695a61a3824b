"""Numbers and what they count."""

from headcount.counted import counted


def test_one_is_not_many():
    assert [counted(n, "byte") for n in (0, 1, 2, 1_200)] == ["0 bytes", "1 byte", "2 bytes", "1,200 bytes"]

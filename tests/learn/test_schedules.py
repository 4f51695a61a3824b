"""Learning rates as pure functions of the step."""

import math
from itertools import pairwise

import pytest

from headcount.learn.schedules import rate
from headcount.tables import ConstantTable, CosineTable, LinearTable, StepDownTable


def rates(schedule, steps=100):
    return [rate(schedule, 2.0, step, steps) for step in range(steps)]


def test_warm_up():
    assert rates(ConstantTable(warmup=0.1))[:11] == pytest.approx([0.2 * n for n in range(1, 11)] + [2.0])
    assert rates(ConstantTable(warmup_steps=4))[:5] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0])
    assert rates(ConstantTable()) == [2.0] * 100


@pytest.mark.parametrize("table", [CosineTable, LinearTable])
def test_falling(table):
    found = rates(table(warmup_steps=10, floor=0.05))
    assert found[10] == 2.0 and found[-1] == pytest.approx(0.1) and max(found) == 2.0
    assert all(a > b for a, b in pairwise(found[10:]))
    assert rate(table(), 1.0, 0, 1) == 1.0


def test_cosine_and_line_differ():
    assert rates(LinearTable(floor=0.0), 101)[50] == pytest.approx(1.0)
    assert rates(CosineTable(floor=0.0), 101)[25] == pytest.approx(2.0 * 0.8535533906, rel=1e-9)


def test_step_down():
    found = rates(StepDownTable(down_at=0.92, down_to=0.5, warmup_steps=2))
    assert found[:2] == [1.0, 2.0] and set(found[2:92]) == {2.0} and set(found[92:]) == {1.0}


def test_a_cosine_from_step_0_runs_under_the_warm_up():
    shifted, own = CosineTable(warmup_steps=10, floor=0.0), CosineTable(warmup_steps=10, floor=0.0, begins="at-step-0")
    rates = [[rate(table, 1.0, step, 101) for step in range(101)] for table in (shifted, own)]
    assert rates[0][:10] == rates[1][:10] and rates[0][10] == 1.0
    assert rates[1][10] == pytest.approx(0.5 * (1 + math.cos(math.pi * 10 / 100)))
    assert rates[1][-1] == pytest.approx(0.0) and rates[1][50] == pytest.approx(0.5)

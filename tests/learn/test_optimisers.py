"""Moments of every optimiser go to named tensors and back, to the bit."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from headcount.learn import optimisers
from headcount.tables import AdamWTable, MinTrustLambTable, SgdTable

TABLES = [SgdTable(lr=0.01), AdamWTable(), MinTrustLambTable()]


def model():
    torch.manual_seed(0)
    return nn.ModuleDict({"used": nn.Linear(4, 3), "unused": nn.Linear(4, 3)})


def learn(modules, optimiser, steps):
    for step in steps:
        optimiser.zero_grad(set_to_none=True)
        modules["used"](torch.full((2, 4), float(step))).square().sum().backward()
        optimiser.step()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_moments_survive_a_checkpoint(table):
    whole, first, second = model(), model(), model()
    learn(whole, optimisers.build(table, whole), range(1, 7))
    before = optimisers.build(table, first)
    learn(first, before, range(1, 4))
    saved = optimisers.to_tensors(before, first)
    assert saved and all(name.startswith("used.") for name in saved)  # nothing of what never learnt
    second.load_state_dict(first.state_dict())
    after = optimisers.build(table, second)
    optimisers.from_tensors(after, second, saved)
    learn(second, after, range(4, 7))
    assert all(a.equal(b) for a, b in zip(whole.parameters(), second.parameters(), strict=True))
    forgotten = model()
    forgotten.load_state_dict(first.state_dict())
    learn(forgotten, optimisers.build(table, forgotten), range(4, 7))
    assert not whole["used"].weight.equal(forgotten["used"].weight)


def test_momentum_is_what_the_table_says():
    one = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(one.weight)
    optimiser = optimisers.build(SgdTable(lr=0.5, momentum=0.9), one)
    for expected in (-0.5, -1.45):  # v = 1, then 0.9 + 1
        one.weight.grad = torch.ones(1, 1)
        optimiser.step()
        assert one.weight.item() == pytest.approx(expected)
    assert set(optimisers.to_tensors(optimiser, one)) == {"weight/momentum_buffer"}


def test_nesterovs_momentum_looks_a_step_ahead():
    one = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(one.weight)
    optimiser = optimisers.build(SgdTable(lr=0.5, momentum=0.9, nesterov=True), one)
    for expected in (-0.95, -0.95 - 0.5 * (1 + 0.9 * 1.9)):  # v = 1, then 1.9; a step is g + μ·v
        one.weight.grad = torch.ones(1, 1)
        optimiser.step()
        assert one.weight.item() == pytest.approx(expected)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_no_optimiser_imports_torchs_compiler(table):
    code = f"""
import sys, torch
from headcount.learn import optimisers
from headcount.tables import AdamWTable, MinTrustLambTable, SgdTable
model = torch.nn.Linear(2, 2)
optimiser = optimisers.build({table!r}, model)
optimiser.zero_grad(set_to_none=True)
model(torch.ones(1, 2)).sum().backward()
before = model.weight.clone()
optimiser.step()
assert not model.weight.equal(before)
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_torchs_own_step_does_the_same(table, monkeypatch):
    own, torchs = model(), model()
    learn(own, optimisers.build(table, own), range(1, 5))
    monkeypatch.setattr(optimisers, "uncompiled", lambda kind: kind)
    learn(torchs, optimisers.build(table, torchs), range(1, 5))
    assert all(a.equal(b) for a, b in zip(own.parameters(), torchs.parameters(), strict=True))

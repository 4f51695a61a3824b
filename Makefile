# `make` installs and shows; `make test` checks everything. Both work from a fresh clone.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo install test lint faults bench bench-dump bench-memory

demo: install
	$(BIN)/headcount demo

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

test: lint
	$(BIN)/pytest -n 2

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Half an hour: every row of the fault table, with the counts it asks for; writes docs/results/faults.md.
faults: install
	$(BIN)/python -m tests.faults

# Ratios against the published way of computing the same; writes docs/results/speed*.md, fused.md, carried.md. On a quiet machine.
bench: install
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.rivals
	$(BIN)/python -m benchmarks.fused
	$(BIN)/python -m benchmarks.carried

# Two minutes: a synthetic dump of 210 MB becomes a corpus on one core; writes docs/results/dump.md.
bench-dump: install
	$(BIN)/python -m benchmarks.dump

# A few minutes: memory of training on a text of 2 GB and on one of 2 MB, for every kind; writes docs/results/memory.md.
bench-memory: install
	$(BIN)/python -m benchmarks.memory

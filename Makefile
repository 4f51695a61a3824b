# `make` installs and shows; `make test` checks everything. Both work from a fresh clone.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo install test lint

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

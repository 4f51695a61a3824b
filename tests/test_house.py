"""The rules of the house that no linter holds: files of at most 400 lines, functions of at most 50."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
MOST_LINES, MOST_OF_A_FUNCTION = 400, 50


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_can_be_read_in_one_sitting(file):
    source = file.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MOST_LINES
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    sizes = {f"{f.name}, line {f.lineno}": (f.end_lineno or 0) - f.lineno + 1 for f in functions}
    assert {name: size for name, size in sizes.items() if size > MOST_OF_A_FUNCTION} == {}

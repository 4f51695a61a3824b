"""A run directory by its name."""

import pytest

from headcount.errors import RequestError
from headcount.learn.run import Run


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b", "wikipedia"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "recipe.toml").touch()


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("runs/nope", "there is: runs/b, runs/wikipedia"),
        ("runs/wikipedai/", "did you mean 'runs/wikipedia'?"),
        ("./runs/B", "there is: runs/b, runs/wikipedia"),
    ],
)
def test_a_name_that_is_no_run_is_compared_with_names_not_with_the_folder_they_share(runs, asked, hint):
    with pytest.raises(RequestError) as error:
        Run.existing(asked)
    assert str(error.value).endswith(f"there is no such folder; {hint}")

"""The recipes that come with Headcount: in a clone they lie in `recipes/`, in an installation beside the package."""

from __future__ import annotations

from pathlib import Path

from headcount.errors import RequestError, nearest


def folder() -> Path:
    """Where the recipes lie."""
    package = Path(__file__).parents[1]
    installed = package / "recipes"
    return installed if installed.is_dir() else package.parents[1] / "recipes"


def find(name: str) -> Path:
    """A recipe by its path, or by its name among ours: `recipes/tiny/sha_rnn.toml` works from anywhere."""
    given = Path(name)
    if given.is_file():
        return given
    ours = {f"recipes/{path.relative_to(folder()).as_posix()}": path for path in folder().rglob("*.toml")}
    if name in ours:
        return ours[name]
    if given.exists():
        raise RequestError(f"{name} is not a file")
    raise RequestError(f"{name}: no such recipe; {nearest(name, ours)}")

"""Small runs on a text with markup, quotes and brackets, for every page: two of one head, and one of 2 layers × 3."""

import pytest

from headcount.cli import run

SMALL = ["--set", "model.width=8", "--set", "evaluate.limit=256", "--steps", "6", "--set", "train.evaluate_every=2"]


@pytest.fixture(scope="package")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    text = "".join(f'<b>né{i}</b> "quoted" (word [{i}])\n' for i in range(900)).encode()
    (folder / "my.txt").write_bytes(text)
    for name in ("one", "two"):
        assert run(["train", str(folder / "my.txt"), "--run", str(folder / name), *SMALL]) == 0
    many = [f"corpus.path={folder / 'my.txt'}", "model.layers=2", "model.heads=3", "model.width=12", "model.window=64"]
    settings = [word for setting in many for word in ("--set", setting)]
    assert run(["train", "recipes/tiny/transformer_xl.toml", "--run", str(folder / "many"), *SMALL, *settings]) == 0
    return folder

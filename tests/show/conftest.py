"""Two small runs on a text with markup, quotes and brackets, for every page."""

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
    return folder

"""headcount demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli.options import Device, Json
from headcount.cli.terminal import Escaper
from headcount.cli.train import conclude

PROMPT = b"    def __init__(self"
READ = 1500


def demo(
    *,
    run: Annotated[Path | None, Parameter(help="the run's folder; runs/demo by default")] = None,
    minutes: Annotated[float, Parameter(help="how long to train")] = 1.75,
    steps: Annotated[int | None, Parameter(help="or how many steps")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Two minutes, end to end: train a small SHA-RNN on Python's own library, measure it, let it write."""
    from headcount.text import corpora
    from headcount.use.load import load
    from headcount.use.train import say, train

    say("A small SHA-RNN learns to write Python from the standard library's sources.")
    budget = {"minutes": minutes} if steps is None else {"steps": steps}
    done = train("recipes/desk/demo.toml", run=run, device=device, **budget)
    say(f"\nAfter {READ} bytes that it never learnt from, and {PROMPT.decode()!r}, it goes on, one byte at a time:\n")
    before = corpora.open_corpus(done.recipe.corpus).split("valid")[:READ].tobytes()  # a cold memory copies itself
    written = load(done.path, device=device).generate(before + b"\n" + PROMPT, 400, temperature=0.7)
    say(Escaper()(PROMPT + written, final=True) + "\n")
    conclude(done, json=json)

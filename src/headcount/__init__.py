"""Headcount: train, measure, compare and use byte-level language models on one machine.

    import headcount as hc
    run = hc.train("my.txt", minutes=10)        # the same as the command
    lm = hc.load("runs/my")                     # best checkpoint, else the last; or a packed file
    lm.generate(b"Once ", 200)                  # bytes; stream=True iterates
    lm.score(b"any bytes")                      # NumPy float64, bits for each byte
    lm.evaluate("other.txt")                    # a Figure: value, protocol, command
    lm.model                                    # the plain torch module

Nothing here imports torch until it has to.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headcount.version import __version__

if TYPE_CHECKING:
    from headcount.learn.run import Run
    from headcount.measure.figure import Figure
    from headcount.use.load import LanguageModel, load
    from headcount.use.train import resume, train

__all__ = ["Figure", "LanguageModel", "Run", "__version__", "load", "resume", "train"]

_HOMES = {
    "Figure": "headcount.measure.figure",
    "LanguageModel": "headcount.use.load",
    "Run": "headcount.learn.run",
    "load": "headcount.use.load",
    "resume": "headcount.use.train",
    "train": "headcount.use.train",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

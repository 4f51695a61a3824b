"""What all tests share: one torch thread per worker, a cache of their own, and small texts that they make."""

import os
import random
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that tests start

import hypothesis
import numpy as np
import pytest
import torch

from headcount.text.encoding import Encoded, encode
from headcount.text.symbols import Bytes

torch.set_num_threads(1)
hypothesis.settings.register_profile("headcount", deadline=None)  # a busy machine is not a fault
hypothesis.settings.load_profile("headcount")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_CACHE", str(tmp_path_factory.mktemp("cache")))


def make_text(size: int, seed: int = 0) -> bytes:
    """Words drawn from a small vocabulary: learnable, and different for every seed."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 8))) for _ in range(200)]
    made = bytearray()
    while len(made) < size:
        made += draw.choice(words).encode() + draw.choice([b" ", b" ", b" ", b", ", b".\n"])
    return bytes(made[:size])


def as_bytes(text: bytes | np.ndarray) -> Encoded:
    """A text whose tokens are its bytes."""
    return encode(np.frombuffer(text, dtype=np.uint8) if isinstance(text, bytes) else text, Bytes())


@pytest.fixture
def text_file(tmp_path) -> Path:
    path = tmp_path / "my.txt"
    path.write_bytes(make_text(20_000))
    return path


def tiny_recipe_text(text: Path) -> str:
    """A recipe that trains in a moment: 12 steps, saved every 4, evaluated every 6, a memory that gets full."""
    return f"""
seed = 3
[corpus]
path = "{text}"
[model]
kind = "sha-rnn"
width = 16
blocks = 2
attention = [0]
window = 40
dropout = 0.1
[batches]
streams = 4
segment = 16
[optimiser]
kind = "adamw"
lr = 1e-2
[schedule]
kind = "cosine"
warmup = 0.2
[train]
steps = 12
evaluate_every = 6
save_every = 4
[evaluate]
limit = 500
"""


@pytest.fixture
def tiny_recipe(tmp_path, text_file) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(tiny_recipe_text(text_file))
    return path


def a_figure(*, protocol: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A line of figures.jsonl with all that one has, and `more`; `protocol` is added to what a protocol has."""
    plain = {"name": "carried", "streams": 1, "segment": 512, "window": None, "window_rule": None, "state": "carried"}
    return {
        "value": 2.0,
        "unit": "bits per byte",
        "nats": 138.6,
        "bytes": 100,
        "protocol": {**plain, "cold_starts": 1, "not_scored": 0, **(protocol or {})},
        "corpus": {"name": "my", "split": "valid", "sha256": "a" * 64},
        "tokens": {"kind": "bytes", "vocabulary": 256, "scored": 100, "exact": True},
        "model": {"kind": "sha-rnn", "parameters": 9, "step": 7, "sha256": "b" * 64},
        "command": "headcount evaluate runs/my",
        "date": "2026-11-18T00:00:00+00:00",
        **more,
    }

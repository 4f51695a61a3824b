"""A small model with weights that make some tokens likelier than others, and a few wordpieces."""

import pytest
import torch

from headcount.models import configure
from headcount.text.wordpieces import Wordpieces

MERGES = [(97, 98), (32, 97), (256, 97), (98, 97), (257, 98), (256, 256), (98, 98)]
"""ab, ␣a, aba, ba, ␣ab, abab, bb."""


def small_model(vocabulary: int, window: int = 6, seed: int = 0, sharp: float = 2.0):
    torch.manual_seed(seed)
    table = {"kind": "sha-rnn", "width": 8, "blocks": 1, "attention": [0], "window": window}
    cls, config = configure(table, vocabulary)
    model = cls(config).finished().eval()
    with torch.no_grad():
        model.head.weight.mul_(2 * sharp)
        model.head.bias.normal_(std=sharp)
    return model


@pytest.fixture
def wordpieces():
    pytest.importorskip("tokenizers")
    return Wordpieces(MERGES)

"""Branches: what comes next there is what the model says of the whole text, and a branch can be followed again."""

import numpy as np
import pytest
import torch

from headcount.claims.branching import branches
from tests.claims.conftest import small_model
from tests.conftest import as_bytes, make_text


@torch.inference_mode()
def plainly(model, inputs):
    """The last row of log probabilities, all tokens read at once from an empty state."""
    hidden, _ = model(torch.tensor([inputs]), model.start(1))
    return model.head.log_probs(hidden)[0, -1].double().numpy()


def test_a_branch_knows_what_comes_next_and_can_be_followed_twice():
    model, text = small_model(256), as_bytes(make_text(700))
    for place, branch in zip((0, 3, 4, 650), branches(model, text, [0, 3, 4, 650]), strict=True):
        before = [10, *text.ids[:place].tolist()]
        assert np.allclose(branch.log_probs[0], plainly(model, before), atol=1e-5)
        once = branch.follow([0, 0], [65, 66])
        again = branch.follow([0], [66])
        assert np.allclose(once.log_probs[0], plainly(model, [*before, 65]), atol=1e-5)
        assert np.allclose(once.log_probs[1], again.log_probs[0], atol=1e-5)
        deeper = once.follow([1, 0, 1], [67, 68, 69])
        assert np.allclose(deeper.log_probs[2], plainly(model, [*before, 66, 69]), atol=1e-5)


def test_places_must_ascend():
    model, text = small_model(256), as_bytes(b"some text")
    with pytest.raises(ValueError, match="ascend"):
        list(branches(model, text, [4, 2]))

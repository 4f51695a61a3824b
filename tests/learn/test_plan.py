"""What a plan refuses before anything is trained."""

import pytest

from headcount.errors import RequestError
from headcount.learn.plan import settle
from headcount.recipe import read
from headcount.use import recipe_files


def test_windows_longer_than_the_context_are_refused():
    recipe = recipe_files.find("recipes/tiny/char_transformer.toml")
    sets = ["corpus.path=README.md", "model.context=16", "evaluate.protocol=sliding-4"]
    with pytest.raises(RequestError, match=r"segment = 17: the model begins anew after 16, which is the longest"):
        settle(read(recipe, [*sets, "batches.segment=17"]), print)
    assert settle(read(recipe, [*sets, "batches.segment=16"]), print).recipe.batches.segment == 16

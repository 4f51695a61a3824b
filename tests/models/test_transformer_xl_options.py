"""Settings and limits of a Transformer-XL that would change nothing beside the others are refused with a sentence."""

import pytest
import torch

from headcount.errors import RequestError
from headcount.measure.protocols import measure
from headcount.models.transformer_xl import TransformerXL, TransformerXLConfig
from headcount.tables import EvaluateTable
from tests.conftest import as_bytes, make_text

SMALL = {"width": 8, "layers": 1, "heads": 2, "inner": 8, "window": 6}


@pytest.mark.parametrize("positions", ["sinusoid", "learned"])
@pytest.mark.parametrize("changes", [{"clamp": 3}, {"memory_start": "zeros"}, {"window_rule": "memory"}], ids=str)
def test_absolute_positions_have_no_memory_and_no_distances(positions, changes):
    with pytest.raises(ValueError, match=f"'{positions}' are absolute .* {next(iter(changes))}"):
        TransformerXLConfig(**SMALL, positions=positions, **changes)


@pytest.mark.parametrize("positions", ["shaw", "sinusoid", "learned"])
def test_only_relative_positions_have_biases_to_share(positions):
    with pytest.raises(ValueError, match=f"shared_biases .* '{positions}'"):
        TransformerXLConfig(**SMALL, positions=positions, shared_biases=False)


def test_only_projections_can_be_tied():
    bands = {**SMALL, "cutoffs": (50,), "tied_projections": (False, True)}
    for changes in ({}, {"embedding_width": 8}):
        with pytest.raises(ValueError, match="need no projections"):
            TransformerXLConfig(**bands, **changes)
    for changes in ({"embedding_width": 6}, {"division": 2}):
        assert "1" not in TransformerXL(TransformerXLConfig(**bands, **changes)).head.output_projections


@pytest.mark.parametrize("positions", ["sinusoid", "learned"])
def test_no_figure_names_a_clamp_that_was_not_in_force(positions):
    torch.manual_seed(0)
    model, text = TransformerXL(TransformerXLConfig(**SMALL, positions=positions)), as_bytes(make_text(100))
    for protocol in ("carried", "dai2019", "sliding-2"):
        with pytest.raises(RequestError, match="clamp = 3: this model has no clamp"):
            measure(model, text, EvaluateTable(protocol=protocol, clamp=3))
        assert "clamp" not in measure(model, text, EvaluateTable(protocol=protocol)).protocol

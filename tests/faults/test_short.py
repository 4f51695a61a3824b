"""Every row of the fault campaigns with a small count; `make faults` runs them with the counts of the table."""

import pytest

from tests.faults import corpora, damage, requests, stops

ROWS = [
    (stops.kills, 20),
    (stops.aimed_kills, 12),
    (stops.exact_resumes, 5),
    (stops.negative_controls, 7),
    (stops.signals, 6),
    (stops.double_starts, 5),
    (stops.stale_locks, 3),
    (damage.full_disks, 6),
    (damage.truncations, 100),
    (damage.flips, 200),
    (damage.missing_extra_swapped, 4),
    (damage.hostile, 30),
    (damage.foreign, 2),
    (damage.not_finite, 6),
    (requests.bad_recipes, 120),
    (requests.changed_between, 10),
    (requests.odd_inputs, 25),
    (requests.sparse_file, 2),
    (requests.odd_places, 15),
    (corpora.packed_texts, 10),
    (corpora.broken_downloads, 15),
    (corpora.killed_downloads, 6),
    (corpora.killed_builds, 5),
    (corpora.hostile_archives, 12),
]


@pytest.mark.parametrize(("row", "count"), ROWS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_row(row, count, tmp_path, tiny_recipe):
    folder = tmp_path / "work"
    folder.mkdir()
    outcome = row(folder, tiny_recipe, count)
    assert outcome.wrong == [] and outcome.right == outcome.tried >= min(count, 2)

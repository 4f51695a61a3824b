"""Prepared corpora: the file and the manifest belong together, or there is no corpus."""

import json

import pytest

from headcount.errors import DataError
from headcount.text import prepared

PARTS = {"train": b"abc", "valid": b"de", "test": b""}


def write(file):
    prepared.write(file, {name: ([content], {"words": 1}) for name, content in PARTS.items()}, {"corpus": "x"})


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "made"
    assert prepared.read_manifest(file) is None and not prepared.is_whole(file)
    write(file)
    manifest = prepared.read_manifest(file)
    assert file.read_bytes() == b"abcde" and prepared.ends_of(manifest) == (3, 5, 5) and prepared.is_whole(file)
    assert manifest["parts"]["valid"] == {"bytes": 2, "words": 1} and manifest["bytes"] == 5
    first = prepared.manifest_file(file).read_bytes()
    write(file)
    assert prepared.manifest_file(file).read_bytes() == first


def test_a_source_that_breaks_leaves_nothing(tmp_path):
    def breaking():
        yield b"abc"
        raise DataError("torn")

    with pytest.raises(DataError):
        prepared.write(tmp_path / "made", {"all": (breaking(), {})}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        "not json",
        "[]",
        "{}",
        '{"parts": []}',
        '{"parts": {"train": {"bytes": 5}}, "bytes": 5, "sha256": ""}',
        '{"parts": {"all": 5}, "bytes": 5}',
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, change):
    file = tmp_path / "made"
    write(file)
    prepared.manifest_file(file).write_text(change)
    with pytest.raises(DataError, match="is damaged"):
        prepared.read_manifest(file)
    assert not prepared.is_whole(file)


def test_sizes_must_add_up(tmp_path):
    file = tmp_path / "made"
    write(file)
    manifest = json.loads(prepared.manifest_file(file).read_text())
    manifest["parts"]["train"]["bytes"] = 4
    prepared.manifest_file(file).write_text(json.dumps(manifest))
    with pytest.raises(DataError):
        prepared.read_manifest(file)

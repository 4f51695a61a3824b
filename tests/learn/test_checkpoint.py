"""A checkpoint proves that it is whole before it is used (fault table, rows 6, 7, 8)."""

import json
import shutil

import pytest

import headcount as hc
from headcount.cli import run as command
from headcount.errors import DataError
from headcount.learn import checkpoint
from tests.faults.runs import assert_same


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with the checkpoints of steps 8 and 12."""
    from tests.conftest import make_text

    folder = tmp_path_factory.mktemp("trained")
    (folder / "my.txt").write_bytes(make_text(20_000))
    sets = ["model.width=8", "batches.streams=2", "batches.segment=16", "train.save_every=4"]
    sets += ["train.evaluate_every=6", "evaluate.limit=200"]
    return hc.train(folder / "my.txt", run=folder / "run", steps=12, set=sets)


@pytest.fixture
def copy(trained, tmp_path):
    shutil.copytree(trained.path, tmp_path / "run")
    return hc.Run(tmp_path / "run")


def files_of(run, step):
    return sorted((run.checkpoints / f"{step:08d}").iterdir())


def test_the_last_two_and_the_best_are_kept(trained):
    steps = checkpoint.steps_in(trained.checkpoints)
    assert steps[-1] == 12 and trained.best() in steps and len(steps) in (2, 3)
    assert [f.name for f in files_of(trained, 12)] == [
        "manifest.json",
        "model.safetensors",
        "optimiser.safetensors",
        "state.json",
        "state.safetensors",
    ]
    assert all(p.name.isdecimal() for p in trained.checkpoints.iterdir())


def test_every_bit_of_a_manifest_counts(copy):
    file = copy.checkpoints / "00000012" / "manifest.json"
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        with pytest.raises(DataError):
            checkpoint.read(copy.checkpoints, 12)


def test_missing_extra_and_swapped_files_are_refused(copy):
    folder, older = copy.checkpoints / "00000012", copy.checkpoints / "00000008"
    for file in files_of(copy, 12):
        whole = file.read_bytes()
        file.unlink()
        with pytest.raises(DataError):
            checkpoint.read(copy.checkpoints, 12)
        file.write_bytes((older / file.name).read_bytes())
        with pytest.raises(DataError):
            checkpoint.read(copy.checkpoints, 12)
        file.write_bytes(whole)
    (folder / "extra.bin").write_bytes(b"x")
    with pytest.raises(DataError, match="manifest lists"):
        checkpoint.read(copy.checkpoints, 12)
    (folder / "extra.bin").unlink()
    checkpoint.read(copy.checkpoints, 12)
    shutil.rmtree(folder)
    shutil.copytree(older, folder)
    with pytest.raises(DataError, match="another step"):
        checkpoint.read(copy.checkpoints, 12)


def test_use_of_a_damaged_checkpoint_is_exit_3_and_resume_falls_back(copy, trained, capsys):
    copy.set_best({"step": 12, "bits_per_byte": 1.0})
    file = copy.checkpoints / "00000012" / "optimiser.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\x00\x00")
    where = str(copy.path)
    for arguments in (["evaluate", where], ["generate", where], ["score", where, str(trained.recipe_file)]):
        assert command(arguments) == 3, arguments
        assert "damaged" in capsys.readouterr().err
    with pytest.raises(DataError):
        hc.load(copy.path)
    assert command(["resume", str(copy.path)]) == 0
    assert "falling back to step 8" in capsys.readouterr().err
    assert_same(copy.path, trained.path)
    assert [e["from"] for e in copy.events() if e["event"] == "fallen_back"] == [12]


def test_all_damaged_is_exit_3_and_nothing_is_deleted(copy, capsys):
    for step in checkpoint.steps_in(copy.checkpoints):
        (copy.checkpoints / f"{step:08d}" / "manifest.json").unlink()
    before = sorted(copy.path.rglob("*"))
    assert command(["resume", str(copy.path)]) == 3
    assert "no checkpoint" in capsys.readouterr().err
    assert [p for p in before if not p.name.startswith(".")] == [
        p for p in sorted(copy.path.rglob("*")) if not p.name.startswith(".")
    ]


def test_best_that_is_not_there_counts_as_none(copy):
    copy.best_file.write_text(json.dumps({"step": 999}))
    assert copy.best() is None and hc.load(str(copy.path)).facts["step"] == 12
    copy.best_file.write_text("{torn")
    assert copy.best() is None

"""The Python API: train, resume, load, score, evaluate, generate, pack, fine-tune."""

import json
import subprocess
import sys

import numpy as np
import pytest

import headcount as hc
from headcount.errors import DataError, RequestError
from headcount.learn import checkpoint
from tests.conftest import make_text


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "my.txt").write_bytes(make_text(30_000))
    return hc.train(folder / "my.txt", run=folder / "run", steps=30, set=["model.width=16", "train.evaluate_every=10"])


def test_importing_it_does_not_import_torch():
    code = "import headcount, headcount.cli, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_run_directory_holds_what_the_design_says(trained):
    names = {p.name for p in trained.path.iterdir() if not p.name.startswith(".")}
    assert names == {"recipe.toml", "metrics.jsonl", "figures.jsonl", "best.json", "checkpoints"}
    recipe = trained.recipe
    assert recipe.train.steps == 30 and len(recipe.corpus.sha256) == 64 and recipe.model["window_rule"] == "exact"
    pairs = [line for line in trained.recipe_file.read_text().splitlines() if " = " in line]
    assert pairs and all(" # " in line for line in pairs)
    events = trained.events()
    assert {"event", "at", "fingerprint"} <= set(events[0]) and events[0]["event"] == "started"
    assert all(("step" in e) != ("at" in e) for e in events)
    first = next(e for e in events if e["event"] == "step")
    assert {"step", "bits_per_byte", "lr", "gradient_norm", "bytes", "seconds"} <= set(first)


def test_it_learns(trained):
    evaluated = [e["bits_per_byte"] for e in trained.events() if e["event"] == "evaluated"]
    assert len(evaluated) == 3 and evaluated[-1] < evaluated[0] < 8


def test_load_takes_the_best_and_scores_any_bytes(trained):
    lm = hc.load(str(trained.path))
    assert lm.facts["step"] == trained.best()
    bits = lm.score(bytes(range(256)))
    assert bits.dtype == np.float64 and bits.shape == (256,) and (bits > 0).all()
    assert lm.score(b"").shape == (0,)
    with pytest.raises(TypeError, match="bytes"):
        lm.score("text")
    assert "sha-rnn" in repr(lm) and lm.model.config.collapsed


def test_evaluate_gives_what_training_measured_and_keeps_it(trained):
    lm = hc.load(trained.path)
    before = len(trained.figures())
    figure = lm.evaluate()
    during = next(e for e in trained.events() if e["event"] == "evaluated" and e["step"] == trained.best())
    assert figure.value == during["bits_per_byte"] and figure.nats == during["nats"]
    kept = trained.figures()[before:]
    assert len(kept) == 1 and kept[0] == json.loads(json.dumps(figure.to_dict()))
    assert kept[0]["command"].startswith("headcount evaluate ") and kept[0]["model"]["sha256"]


def test_a_torn_figure_does_not_swallow_the_next(trained):
    lm = hc.load(trained.path)
    lm.evaluate(limit=50)
    before = len(trained.figures())
    with trained.figures_file.open("a") as file:
        file.write('{"value": 1.')
    assert lm.evaluate(limit=60).bytes == 60
    assert len(trained.figures()) == before + 1 and trained.figures()[-1]["bytes"] == 60
    assert trained.own_figure()["bytes"] > 60  # a look at a few bytes does not become the run's figure
    lm.evaluate(window=3)
    assert trained.own_figure()["protocol"]["window"] != 3  # nor does another window


def test_evaluate_another_text_with_limits(trained, tmp_path):
    (tmp_path / "other.txt").write_bytes(make_text(3_000, seed=9))
    lm = hc.load(trained.path)
    whole, part = lm.evaluate(tmp_path / "other.txt"), lm.evaluate(tmp_path / "other.txt", limit=100, window=7)
    assert whole.bytes == 3_000 and part.bytes == 100 and part.protocol["window"] == 7
    assert lm.score(make_text(3_000, seed=9)).mean() == pytest.approx(whole.value, rel=1e-6)
    for wrong in ({"split": "test"}, {"window": 0}, {"limit": 0}, {"protocol": "none"}, {"text": tmp_path / "no.txt"}):
        with pytest.raises(RequestError):
            lm.evaluate(**wrong)


def test_generate(trained):
    lm = hc.load(trained.path)
    written = lm.generate(b"Once ", 60, seed=4)
    assert len(written) == 60 and written == bytes(lm.generate(b"Once ", 60, seed=4, stream=True))
    assert lm.generate(b"", 0) == b""


def test_checkpoints_by_name(trained):
    steps = checkpoint.steps_in(trained.checkpoints)
    assert hc.load(trained.path, checkpoint="last").facts["step"] == steps[-1]
    assert hc.load(trained.path, checkpoint=steps[0]).facts["step"] == steps[0]
    with pytest.raises(RequestError, match="there is best, last"):
        hc.load(trained.path, checkpoint="77")


def test_a_packed_model_is_the_same_model(trained, tmp_path):
    lm = hc.load(trained.path)
    lm.save(tmp_path / "one.hc")
    lm.save(tmp_path / "two.hc")
    assert (tmp_path / "one.hc").read_bytes() == (tmp_path / "two.hc").read_bytes()
    packed = hc.load(tmp_path / "one.hc")
    assert (packed.score(b"some text") == lm.score(b"some text")).all()
    assert packed.facts == lm.facts and packed.model.config == lm.model.config
    with pytest.raises(RequestError, match="--text"):
        packed.evaluate()


def test_damaged_packed_models_are_refused(trained, tmp_path):
    path = tmp_path / "model.hc"
    hc.load(trained.path).save(path)
    whole = path.read_bytes()
    draw = np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    for place in [*draw.integers(0, len(whole), 60), *draw.integers(0, header, 60)]:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(draw.integers(0, 8))
        path.write_bytes(changed)
        with pytest.raises(DataError):
            hc.load(path)
    for length in (0, 5, header - 1, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            hc.load(path)


def test_fine_tuning_starts_from_the_weights_and_is_resumable(trained, tmp_path):
    (tmp_path / "new.txt").write_bytes(make_text(20_000, seed=5))
    tuned = hc.train(tmp_path / "new.txt", run=tmp_path / "tuned", start_from=trained.path, steps=4)
    assert tuned.recipe.model["width"] == 16 and tuned.recipe.train.initial == hc.load(trained.path).facts["sha256"]
    first = next(e["bits_per_byte"] for e in tuned.events() if e["event"] == "step")
    fresh = hc.train(tmp_path / "new.txt", run=tmp_path / "fresh", steps=1, set=["model.width=16"])
    assert first < next(e["bits_per_byte"] for e in fresh.events() if e["event"] == "step")
    packed = tmp_path / "packed.hc"
    hc.load(trained.path).save(packed)
    assert hc.train(tmp_path / "new.txt", run=tmp_path / "again", start_from=packed, steps=2).recipe.model["collapsed"]
    with pytest.raises(RequestError, match="belong to another model"):
        hc.train(tmp_path / "new.txt", run=tmp_path / "no", start_from=packed, steps=2, set=["model.width=32"])
    with pytest.raises(RequestError, match="--from"):
        hc.train(tuned.recipe_file, run=tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_minutes_become_steps_before_the_run(tmp_path, text_file):
    run = hc.train(text_file, run=tmp_path / "run", minutes=0.02, set=["model.width=8", "evaluate.limit=64"])
    assert run.recipe.train.steps > 1 and run.events()[-1]["at"] == run.recipe.train.steps


def test_a_short_text_lowers_the_streams(tmp_path, capsys):
    (tmp_path / "short.txt").write_bytes(make_text(1_100))
    run = hc.train(tmp_path / "short.txt", run=tmp_path / "run", steps=2)
    assert run.recipe.batches.streams == 6 and "too few for 8 streams" in capsys.readouterr().err


def test_texts_alone_hold_out_a_part_and_size_themselves(tmp_path):
    from headcount.learn.sizing import recipe_for

    for size, held_out in ((5_000, 1_000), (50_000, 4_096), (1_000_000, 50_000)):
        recipe = recipe_for(size)
        assert round(recipe.corpus.split[1] * size) == held_out and len(recipe.corpus.split) == 2
    widths = [recipe_for(size).model["width"] for size in (5_000, 50_000, 500_000, 5_000_000, 50_000_000)]
    dropouts = [recipe_for(size).model["dropout"] for size in (5_000, 50_000, 500_000, 5_000_000, 50_000_000)]
    assert widths == sorted(widths) and len(set(widths)) > 2 and dropouts == sorted(dropouts, reverse=True)


def test_training_leaves_the_callers_generator_alone(tmp_path, text_file):
    import torch

    torch.manual_seed(77)
    expected = torch.rand(3)
    torch.manual_seed(77)
    hc.train(text_file, run=tmp_path / "run", steps=2, set=["model.width=8"])
    assert torch.rand(3).equal(expected)

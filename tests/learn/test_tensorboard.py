"""TensorBoard's event files: what is written, what a resumed run hides, and that they never cost a run.

The last test needs the package itself (`pip install tensorboard`) and is skipped without it. It is not among
the tools of development, since every training of every test would then write event files too.
"""

import sys
import types

import pytest

from headcount.learn import tensorboard


class Writer:
    def __init__(self, folder, flush_secs, purge_step):
        self.purge_step, self.written, self.broken = purge_step, [], False

    def _add(self, name, value, step):
        if self.broken:
            raise OSError(28, "No space left on device")
        self.written.append((name, value, step))

    add_scalar = add_text = _add

    def flush(self):
        self.written.append("flushed")


@pytest.fixture
def installed(monkeypatch):
    """A package that is there, with a writer that can be looked at."""
    monkeypatch.setattr(tensorboard.importlib.util, "find_spec", lambda name: object())
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return module


def test_without_the_package_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(tensorboard.importlib.util, "find_spec", lambda name: None)
    assert tensorboard.sink_for(tmp_path, 0, print) is None


def test_events_become_scalars_and_texts(installed, tmp_path):
    sink = tensorboard.sink_for(tmp_path, 0, print)
    sink({"event": "step", "step": 3, "bits_per_byte": 2.5, "lr": 0.1, "gradient_norm": 1.0})
    sink({"event": "evaluated", "step": 3, "bits_per_byte": 2.25})
    sink({"event": "sampled", "step": 3, "text": "abc"})
    sink({"event": "saved", "step": 3})
    sink({"event": "finished", "at": 3})
    assert sink.writer.written == [
        ("training/bits_per_byte", 2.5, 3),
        ("training/lr", 0.1, 3),
        ("training/gradient_norm", 1.0, 3),
        ("validation/bits_per_byte", 2.25, 3),
        ("sample", "abc", 3),
        "flushed",
    ]


def test_a_resumed_run_hides_the_steps_that_come_again(installed, tmp_path):
    assert tensorboard.sink_for(tmp_path, 40, print).writer.purge_step == 41


def test_a_full_disk_ends_the_event_files_and_nothing_else(installed, tmp_path):
    said = []
    sink = tensorboard.sink_for(tmp_path, 0, said.append)
    sink.writer.broken = True
    for step in range(3):
        sink({"event": "evaluated", "step": step, "bits_per_byte": 2.0})
    assert len(said) == 1 and "No space left" in said[0] and sink.writer.written == []


def test_a_package_that_is_broken_is_said_and_left_out(installed, tmp_path):
    said = []
    installed.SummaryWriter = lambda *a, **k: (_ for _ in ()).throw(TypeError("descriptors"))
    assert tensorboard.sink_for(tmp_path, 0, said.append) is None and "TypeError" in said[0]


@pytest.mark.filterwarnings("default")  # the package's own are not ours to mend
def test_the_real_package_reads_what_we_write(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for done, steps, value in ((0, (1, 2, 3), 4.0), (2, (3, 4), 2.0)):  # resumed at step 2: step 3 comes again
        sink = tensorboard.sink_for(tmp_path, done, pytest.fail)
        for step in steps:
            sink({"event": "step", "step": step, "bits_per_byte": value, "lr": 0.5, "gradient_norm": 1.0})
        sink({"event": "evaluated", "step": steps[-1], "bits_per_byte": value / 2})
        sink({"event": "sampled", "step": steps[-1], "text": "written"})
        sink({"event": "finished", "at": steps[-1]})
        sink.writer.close()
    found = accumulator.EventAccumulator(str(tmp_path)).Reload()
    learnt = [(e.step, e.value) for e in found.Scalars("training/bits_per_byte")]
    assert learnt == [(1, 4.0), (2, 4.0), (3, 2.0), (4, 2.0)]
    assert [(e.step, e.value) for e in found.Scalars("validation/bits_per_byte")] == [(4, 1.0)]
    assert {"training/lr", "training/gradient_norm"} <= set(found.Tags()["scalars"])
    assert found.Tags()["tensors"] == ["sample/text_summary"]

"""Disks that are full, files that are damaged or hostile, numbers that are not finite (rows 5 – 11)."""

from __future__ import annotations

import json
import math
import pickle
import random
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
import torch

import headcount as hc
from headcount.errors import DataError
from headcount.learn import checkpoint
from headcount.models.contract import Loss
from headcount.models.sha_rnn import ShaRnn
from tests.faults import processes
from tests.faults.outcome import Outcome
from tests.faults.runs import assert_same, leftovers
from tests.faults.stops import whole_run


def full_disks(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 5: no file may grow beyond some size: a sentence, nothing half-written, and the run can go on later."""
    whole, outcome, draw = whole_run(folder, recipe), Outcome(), random.Random(2)
    largest = max(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    while outcome.tried < count:
        run, limit = folder / "full", draw.randrange(200, largest)
        begun = outcome.tried % 2 == 1  # every second run is full only after its first checkpoints
        with outcome.one(f"{limit} bytes{', later' if begun else ''}"):
            train = ["train", recipe, "--run", run]
            if begun:
                assert processes.run(train, folder / "log", ("die_after", 9)) == -9
                before = checkpoint.steps_in(run / "checkpoints")
            code = processes.run(["resume", run] if begun else train, folder / "log", ("file_limit", limit))
            assert code in (0, 2, 4), f"exit code {code}"
            assert "Traceback" not in processes.said(folder / "log")
            if not run.exists():
                assert code == 2 and not begun
                continue
            steps = checkpoint.steps_in(run / "checkpoints") if (run / "checkpoints").exists() else []
            assert not begun or steps[-1] >= before[-1]
            for step in steps:
                checkpoint.read(run / "checkpoints", step)
            assert not leftovers(run)
            assert processes.run(["resume", run], folder / "log") == 0, processes.said(folder / "log")
            assert_same(run, whole)
        shutil.rmtree(run, ignore_errors=True)
    return outcome


def _each_damage(folder: Path, recipe: Path, count: int, damage: Callable[[bytes, random.Random], bytes]) -> Outcome:
    whole, outcome, draw = whole_run(folder, recipe), Outcome(), random.Random(0)
    files = sorted((whole / "checkpoints" / "00000012").iterdir())
    for attempt in range(count):
        file = files[attempt % len(files)]
        content = file.read_bytes()
        changed = damage(content, draw)
        if changed == content:
            continue
        file.write_bytes(changed)
        with outcome.one(f"{file.name}, {attempt}"):
            try:
                checkpoint.read(whole / "checkpoints", 12)
            except DataError:
                pass
            else:
                raise AssertionError("used as if nothing had happened")
        file.write_bytes(content)
    checkpoint.read(whole / "checkpoints", 12)
    return outcome


def truncations(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 6: a checkpoint's file cut to any length is noticed."""
    return _each_damage(folder, recipe, count, lambda content, draw: content[: draw.randrange(len(content))])


def flips(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 7: one flipped bit anywhere in a checkpoint is noticed."""

    def flip(content: bytes, draw: random.Random) -> bytes:
        place = draw.randrange(len(content))
        return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]

    return _each_damage(folder, recipe, count, flip)


def missing_extra_swapped(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 8: files that are missing, extra, damaged or another step's; resume falls back and the run is the same."""
    whole, outcome = whole_run(folder, recipe), Outcome()
    names = [file.name for file in sorted((whole / "checkpoints" / "00000012").iterdir())]
    kinds = ("missing", "swapped", "empty", "extra", "cut", "flipped")
    cases = [(kind, name) for kind in kinds for name in names][:count]
    for kind, name in cases:
        run = folder / "changed"
        shutil.copytree(whole, run)
        newest, older = run / "checkpoints" / "00000012", run / "checkpoints" / "00000008"
        if kind == "missing":
            (newest / name).unlink()
        elif kind == "swapped":
            shutil.copy(older / name, newest / name)
        elif kind == "empty":
            (newest / name).write_bytes(b"")
        elif kind == "cut":
            (newest / name).write_bytes((newest / name).read_bytes()[:-1])
        elif kind == "flipped":
            content = (newest / name).read_bytes()
            (newest / name).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        else:
            (newest / f"{name}.old").write_bytes(b"x")
        with outcome.one(f"{kind} {name}"):
            assert processes.run(["resume", run], folder / "log") == 0, processes.said(folder / "log")
            assert "falling back" in processes.said(folder / "log")
            assert_same(run, whole)
        shutil.rmtree(run)
    return outcome


class Trap:
    """Runs something when it is unpickled."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.sign,))


def _tensors(header: object, data: bytes = bytes(64)) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def hostile_files(sign: Path, packed: bytes) -> dict[str, bytes]:
    """Files that pose as models."""
    length = struct.unpack("<Q", packed[:8])[0]
    header = json.loads(packed[8 : 8 + length])
    body = packed[8 + length :]
    tensor = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}
    first = next(name for name in header if name != "__metadata__")

    def changed(**entry: object) -> bytes:
        return _tensors({**header, first: {**header[first], **entry}}, body)

    def described(metadata: object) -> bytes:
        return _tensors({**header, "__metadata__": metadata}, body)

    trap = pickle.dumps(Trap(sign))
    return {
        "pickle": trap,
        "pickle, protocol 0": pickle.dumps(Trap(sign), protocol=0),
        "pickle behind a length": struct.pack("<Q", len(trap)) + trap,
        "empty": b"",
        "seven bytes": bytes(7),
        "only a length": struct.pack("<Q", 10),
        "zeros": bytes(1_000),
        "noise": random.Random(0).randbytes(5_000),
        "length of 100 MB": struct.pack("<Q", 100_000_000) + b"{}",
        "length of 2^63": struct.pack("<Q", 1 << 63) + b"{}",
        "length of 2^64 - 1": struct.pack("<Q", (1 << 64) - 1) + b"{}",
        "header of 101 MB": _tensors(b"{" + b" " * 101_000_000 + b"}"),
        "header is not JSON": _tensors(b"not json"),
        "header is not UTF-8": _tensors(b'{"\xff\xfe": 1}'),
        "header is a list": _tensors([1, 2, 3]),
        "header nests 100,000 deep": _tensors(b"[" * 100_000 + b"]" * 100_000),
        "tensors overlap": _tensors({"a": tensor, "b": tensor}),
        "negative offsets": _tensors({"a": {**tensor, "data_offsets": [-64, 0]}}),
        "offsets backwards": _tensors({"a": {**tensor, "data_offsets": [64, 0]}}),
        "offsets beyond the end": _tensors({"a": {**tensor, "data_offsets": [0, 1 << 40]}}),
        "shape overflows": _tensors({"a": {**tensor, "shape": [1 << 40, 1 << 40]}}),
        "unknown dtype": _tensors({"a": {**tensor, "dtype": "F31"}}),
        "a hole between tensors": _tensors({"a": tensor, "b": {**tensor, "data_offsets": [128, 192]}}, bytes(192)),
        "no description": _tensors({name: entry for name, entry in header.items() if name != "__metadata__"}, body),
        "description is no JSON": described({"headcount": "{"}),
        "another shape": changed(shape=[1, 1]),
        "cut in half": packed[: len(packed) // 2],
        "a byte too many": packed + b"x",
        "a name twice": _tensors(json.dumps(header).encode().replace(b"}}", b'}, "a": 1, "a": 2}', 1), body),
        "description of a huge model": _huge(header, body),
    }


def _huge(header: dict, body: bytes) -> bytes:
    """The description claims a model that no machine holds; the tensors stay small."""
    text = json.dumps(header["__metadata__"])
    return _tensors({**header, "__metadata__": json.loads(text.replace('\\"width\\": 16', '\\"width\\": 65536'))}, body)


def hostile(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 9: nothing is executed, every file is refused in a sentence, within a second and 200 MB."""
    whole, outcome, sign = whole_run(folder, recipe), Outcome(), folder / "executed"
    hc.load(whole).save(folder / "packed")
    for name, content in list(hostile_files(sign, (folder / "packed").read_bytes()).items())[:count]:
        for suffix in (".safetensors", ".pt"):
            (folder / f"model{suffix}").write_bytes(content)
        zipped = folder / "model.pt"
        if name == "zeros":  # a zip that unfolds to a hundred times its size, as .pt files are zips
            with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("data.pkl", bytes(50_000_000))
        with outcome.one(name):
            for file in (folder / "model.safetensors", zipped):
                code = processes.run(["generate", file, "--bytes", "1"], folder / "log", ("limit", 200_000_000, 1))
                assert code in (2, 3), f"exit code {code}: {processes.said(folder / 'log')}"
                said = processes.said(folder / "log")
                assert said.startswith("headcount: ") and "Traceback" not in said and "fault of ours" not in said, said
            assert not sign.exists(), "it was executed"
    return outcome


def foreign(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 10: a pickled module of another repository is refused with a sentence; the audit hook sees no unpickling."""
    outcome, seen = Outcome(), []
    sys.addaudithook(lambda event, arguments: seen.append(arguments) if event == "pickle.find_class" else None)
    from headcount.cli import run

    for number in range(count):
        file = folder / f"original{number}.pt"
        torch.save(torch.nn.LSTM(4, 4) if number % 2 else {"model": [torch.zeros(3)]}, file)
        with outcome.one(number):
            seen.clear()
            for command in (
                ["generate", file],
                ["evaluate", file, "--text", recipe],
                ["info", file],
                ["pack", file, "-o", folder / "x"],
            ):
                assert run([str(part) for part in command]) in (2, 3)
            assert not seen, "something was unpickled"
    with outcome.one("the hook sees what it should"):
        pickle.loads(pickle.dumps(random.Random))
        assert seen
    return outcome


def not_finite(folder: Path, recipe: Path, count: int) -> Outcome:
    """Row 11: a loss that is NaN or infinite, or a finite one whose gradient is not: weights, moments and state stay as
    they were; no such checkpoint.
    """
    objective, publish, outcome = ShaRnn.objective, checkpoint.publish, Outcome()
    steps, kept = 2 * count + 2, {}
    calls = {"now": 0}

    def poisoning(self, tokens, state, progress):
        loss, after = objective(self, tokens, state, progress)
        calls["now"] += 1
        if calls["now"] % 2 == 0 and calls["now"] <= 2 * count:
            nll, factor = loss.parts["nll"], (math.nan, math.inf, -math.inf, None)[calls["now"] // 2 % 4]
            # The root's slope at 0 is infinite.
            wrong = nll + (0 * nll).abs().sqrt() if factor is None else nll * factor
            loss = Loss({"nll": wrong}, {"nll": 1.0})
        return loss, after

    def keeping(where, step, what):
        kept[step] = {n: {k: t.clone() for k, t in getattr(what, n).items()} for n in ("model", "optimiser", "state")}
        publish(where, step, what)

    ShaRnn.objective, checkpoint.publish = poisoning, keeping
    try:
        settings = ["train.save_every=1", f"train.evaluate_every={steps}"]
        run = hc.train(recipe, run=folder / "run", set=settings, steps=steps)
    finally:
        ShaRnn.objective, checkpoint.publish = objective, publish
    skipped = {event["step"] for event in run.events() if event["event"] == "skipped"}
    for step in range(2, 2 * count + 1, 2):
        with outcome.one(f"step {step}"):
            assert step in skipped
            for name in ("model", "optimiser", "state"):
                assert all(t.equal(kept[step][name][key]) for key, t in kept[step - 1][name].items()), name
            assert any(not t.equal(kept[step + 1]["model"][key]) for key, t in kept[step]["model"].items())
    for file in run.path.rglob("*.safetensors"):
        tensors = safetensors.torch.load(file.read_bytes()).values()
        assert all(t.isfinite().all() for t in tensors if t.is_floating_point())
    return outcome

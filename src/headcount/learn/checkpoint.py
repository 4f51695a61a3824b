"""Checkpoints: folders that are whole or not there, and that prove it before anything in them is used.

    checkpoints/00001000/
        model.safetensors  optimiser.safetensors  state.safetensors   tensors; nothing of clock, host or path
        state.json                                                    step, best so far, recipe, fingerprint, time
        manifest.json                                                 size and sha256 of each, and of itself

A checkpoint is written under a temporary name, flushed, renamed. Neither safetensors nor torch notices a flipped bit:
the manifest does. No pickle is loaded, here or anywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from headcount import durable
from headcount.errors import DataError, TrainingError

FORMAT = 1
TENSOR_FILES = ("model", "optimiser", "state")
MANIFEST = "manifest.json"
DAMAGED = ".damaged-"


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to go on."""

    model: Mapping[str, Tensor]
    optimiser: Mapping[str, Tensor]
    state: Mapping[str, Tensor]
    record: Mapping[str, Any]
    """What `state.json` holds."""
    model_sha256: str = ""


def folder_of(checkpoints: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return checkpoints / f"{step:08d}"


def steps_in(checkpoints: Path) -> list[int]:
    """The steps that have a checkpoint, oldest first."""
    if not checkpoints.is_dir():
        return []
    return sorted(int(entry.name) for entry in checkpoints.iterdir() if entry.name.isdecimal())


def publish(checkpoints: Path, step: int, checkpoint: Checkpoint) -> None:
    """Write a checkpoint so that it is there whole or not at all; a number that is not finite is never written."""
    files = {f"{name}.safetensors": _serialise(getattr(checkpoint, name), name) for name in TENSOR_FILES}
    files["state.json"] = json.dumps(checkpoint.record, indent=1, allow_nan=False).encode()
    files[MANIFEST] = _manifest({name: _entry(content) for name, content in files.items()})
    _require_room(checkpoints, sum(map(len, files.values())))
    final = folder_of(checkpoints, step)
    temporary = durable.temporary_name(final)
    try:
        temporary.mkdir()
        for name, content in files.items():
            with (temporary / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        durable.flush_folder(temporary)
        temporary.rename(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    durable.flush_folder(checkpoints)
    durable.sweep(checkpoints)
    read_files(checkpoints, step)  # what cannot be read back is no checkpoint: older ones are deleted only after this


def read(checkpoints: Path, step: int) -> Checkpoint:
    """A verified checkpoint; `DataError` names what is wrong with it."""
    files = read_files(checkpoints, step)
    tensors = {name: safetensors.torch.load(files[f"{name}.safetensors"]) for name in TENSOR_FILES}
    digest = hashlib.sha256(files["model.safetensors"]).hexdigest()
    return Checkpoint(**tensors, record=json.loads(files["state.json"]), model_sha256=digest)


def read_files(checkpoints: Path, step: int) -> dict[str, bytes]:
    """The bytes of every file of a checkpoint, verified: what is hashed is what is used."""
    folder = folder_of(checkpoints, step)
    try:
        manifest = (folder / MANIFEST).read_bytes()
        listed: dict[str, dict[str, Any]] = json.loads(manifest)["files"]
        if manifest != _manifest(listed):
            raise DataError(f"{folder / MANIFEST} is damaged")
        present = {entry.name for entry in folder.iterdir()}
        if present != {*listed, MANIFEST} or not {f"{name}.safetensors" for name in TENSOR_FILES} < present:
            raise DataError(f"{folder} does not hold the files that its manifest lists")
        files = {name: (folder / name).read_bytes() for name in listed}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder} is damaged: {type(error).__name__}: {error}") from error
    for name, content in files.items():
        if _entry(content) != listed[name]:
            raise DataError(f"{folder / name} is damaged: it is not what the manifest says")
    if json.loads(files["state.json"])["step"] != step:
        raise DataError(f"{folder} holds another step's checkpoint")
    return files


def set_aside(checkpoints: Path, step: int) -> None:
    """Take a damaged checkpoint out of the way without deleting it."""
    final = folder_of(checkpoints, step)
    target = checkpoints / f"{DAMAGED}{final.name}"
    if target.exists():
        shutil.rmtree(target)
    final.rename(target)


def prune(checkpoints: Path, best: int | None) -> None:
    """Keep the last two and the best."""
    steps = steps_in(checkpoints)
    for step in steps[:-2]:
        if step != best:
            # Renamed first: a folder that is half deleted must not look like a checkpoint.
            doomed = durable.temporary_name(folder_of(checkpoints, step))
            folder_of(checkpoints, step).rename(doomed)
            shutil.rmtree(doomed)


def _serialise(tensors: Mapping[str, Tensor], what: str) -> bytes:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise TrainingError(f"{what}: {name} holds numbers that are not finite; no checkpoint was written")
    return safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def _entry(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _manifest(listed: Mapping[str, Any]) -> bytes:
    """The one way to write it: a manifest that reads the same but is written otherwise is damaged."""
    own = hashlib.sha256(json.dumps([FORMAT, listed]).encode()).hexdigest()
    return json.dumps({"format": FORMAT, "files": listed, "sha256": own}, indent=1).encode()


def _require_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size:
        raise OSError(28, f"{size / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB are free")

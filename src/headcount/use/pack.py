"""A finished model in one safetensors file: tensors, and in the header what is needed to use them.

The header also holds a hash of every tensor's name, shape and bytes: a flipped bit is noticed before use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from headcount import durable
from headcount.errors import DataError, RequestError
from headcount.models import configure
from headcount.models.contract import Model
from headcount.text import tokens as kinds
from headcount.text.tokens import Tokens

KEY = "headcount"
FORMAT = 1
_UNREADABLE = (safetensors.SafetensorError, ValueError, KeyError, TypeError)


def write(path: Path, model: Model, about: Mapping[str, Any]) -> int:
    """Pack a finished model into so many bytes; `about` is its kind, its tokens, the step and hash it came from."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    header = {"format": FORMAT, "config": asdict(model.config), **about}
    header["sha256"] = _hash(tensors, header)
    packed = safetensors.torch.save(tensors, {KEY: json.dumps(header)})
    try:
        durable.write(path, [packed])
    except BrokenPipeError:  # who read it has gone
        raise
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}") from error
    return len(packed)


def read(path: Path) -> tuple[Model, str, dict[str, Any], Tokens]:
    """A packed model, verified: the model, its kind, the facts it was packed with, and its tokens."""
    header = read_header(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        if header["sha256"] != _hash(tensors, header):
            raise DataError(f"{path} is damaged: its tensors are not the ones that were packed")
        cls, config = configure({"kind": header["kind"], **header["config"]}, header["config"]["vocabulary"])
        model = cls.blank(config)
        model.load_state_dict(tensors)
    except (*_UNREADABLE, RuntimeError, RequestError) as error:
        raise DataError(f"{path} is not a model packed by headcount, or is damaged: {error}") from error
    told = header["tokens"]  # a word, before there were kinds that learn
    return model, header["kind"], header["facts"], kinds.read({"kind": told} if isinstance(told, str) else told)


def read_header(path: Path) -> dict[str, Any]:
    """What the file says of itself; the tensors are not looked at."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[KEY])
        if header["format"] != FORMAT or not all(
            key in header for key in ("kind", "config", "tokens", "facts", "sha256")
        ):
            raise DataError(f"{path} was packed in another format ({header['format']})")
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror or error}") from error
    except _UNREADABLE as error:
        _refuse_pickle(path)
        raise DataError(f"{path} is not a model packed by headcount, or is damaged: {error}") from error
    return dict(header)


def _refuse_pickle(path: Path) -> None:
    """Say what can be done about a file that `torch.save` wrote, which may run anything when it is unpickled."""
    with path.open("rb") as file:
        begins = file.read(2)
    if begins in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04"):
        raise DataError(
            f"{path} is a pickle: loading it could run anything, so it is never loaded. Where you trust it, save its "
            "state_dict() with safetensors.torch.save_file, and read that with headcount.exchange.legacy"
        )


def _hash(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    said = {key: value for key, value in header.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()

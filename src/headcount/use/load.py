"""A trained model in use: `load` gives a `LanguageModel` that scores, evaluates, generates and packs."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from headcount.errors import RequestError
from headcount.learn import checkpoint as checkpoints
from headcount.learn import device as devices
from headcount.learn.resume import differences
from headcount.learn.run import Run
from headcount.measure.convert import count
from headcount.measure.figure import Figure
from headcount.measure.protocols import Measurement, measure
from headcount.measure.sample import Sampling, write
from headcount.measure.spelled import likeliest_bytes, score_bytes
from headcount.models import configure
from headcount.models.contract import Model, count_parameters
from headcount.recipe import check_table
from headcount.tables import EvaluateTable
from headcount.text import corpora
from headcount.text import tokens as kinds
from headcount.text.encoding import Encoded, encode
from headcount.text.tokens import Bytes, Tokens
from headcount.use import pack


class LanguageModel:
    """A finished model, where it came from, and what one does with it."""

    def __init__(self, saved: Saved, path: Path, device: str, run: Run | None = None) -> None:
        self.model = saved.model.finished().to(device).eval()
        self.kind, self.facts, self.tokens = saved.kind, saved.facts, saved.tokens
        self.path, self.run = path, run

    def __repr__(self) -> str:
        return f"LanguageModel({self.kind}, {count_parameters(self.model):,} parameters, from {str(self.path)!r})"

    def score(self, text: bytes) -> npt.NDArray[np.float64]:
        """Bits for every byte, each given all bytes before it."""
        if not isinstance(text, bytes | bytearray | memoryview):
            raise TypeError(f"score takes bytes, not {type(text).__name__}")
        pieces = list(self.score_pieces(np.frombuffer(text, dtype=np.uint8)))
        return np.concatenate([np.zeros(0), *pieces])

    def read(self, text: bytes | npt.NDArray[np.uint8]) -> Encoded:
        """A text as the model reads it; it knows whether it can be restored, and what a figure is counted over."""
        return encode(np.frombuffer(text, dtype=np.uint8) if isinstance(text, bytes) else text, self.tokens)

    def score_pieces(self, text: npt.NDArray[np.uint8] | Encoded) -> Iterator[npt.NDArray[np.float64]]:
        """Bits for every byte, a piece at a time, for texts of any length."""
        for nats in score_bytes(self.model, text if isinstance(text, Encoded) else self.read(text)):
            yield nats / math.log(2)

    def likeliest(
        self, text: Encoded, count: int = 10
    ) -> tuple[npt.NDArray[np.float64], list[list[tuple[int, float]]]]:
        """Bits for every byte, and at every place the likeliest bytes with their probabilities, the likeliest first."""
        nats, expected = likeliest_bytes(self.model, text, count)
        return nats / math.log(2), expected

    def evaluate(
        self,
        text: str | Path | None = None,
        *,
        split: str | None = None,
        curve: str | None = None,
        **how: Any,
    ) -> Figure:
        """The figure on a file, or on a split (valid) of the run's own corpus; kept in the run's `figures.jsonl`.

        `how`: protocol, segment, window, clamp (the recipe's where they are left out), limit. A point of a `curve` says
        so: it is no figure to compare runs by.
        """
        table = self.how(how)
        name, split, source = self.source(text, split)
        command = ["headcount", "evaluate", str(self.path)]
        command += ["--split", split] if text is None else ["--text", str(text)]
        for key, value in vars(table).items():
            command += [f"--{key}", str(value)] if value is not None else []
        command += ["--checkpoint", str(self.facts["step"])] if self.run else []
        given = source[: table.limit]
        measured = measure(self.model, encode(given, self.tokens), table, split=split)
        if curve is not None:
            measured = dataclasses.replace(measured, protocol={**measured.protocol, "curve": curve})
        return self.keep_figure(measured, name, split, command, given)

    def how(self, asked: Mapping[str, Any]) -> EvaluateTable:
        """How to measure: what was asked for over what the recipe says; `limit` is only of training there."""
        given = {key: value for key, value in asked.items() if value is not None}
        own = self.run.recipe.to_dict()["evaluate"] if self.run else {}
        if given.get("protocol", own.get("protocol")) != own.get("protocol"):
            own = {}  # its lengths belong to its protocol
        return check_table(EvaluateTable, {**own, "limit": None, **given}, "evaluate")

    def keep_figure(
        self, measured: Measurement, corpus: str, split: str, command: Sequence[str], text: npt.NDArray[np.uint8]
    ) -> Figure:
        """The figure of a measurement of a text, kept in the run with the counts by which it can be converted."""
        given = measured.bytes + measured.protocol["not_scored"]
        counts = {name: number for name, number in vars(count(text)).items() if number is not None}
        figure = Figure.of(
            measured,
            corpus={"name": corpus, "split": split, "sha256": measured.sha256, "bytes": given, "counts": counts},
            model=self.describe(),
            command=shlex.join(command),
        )
        if self.run is not None:
            self.run.add_figure(figure)
        return figure

    def source(self, text: str | Path | None, split: str | None) -> tuple[str, str, npt.NDArray[np.uint8]]:
        """Name, split and bytes of a file, or of a split (valid) of the run's own corpus."""
        if text is not None:
            if split is not None:
                raise RequestError(f"--split {split} is of the run's own corpus: a --text is measured as a whole")
            return Path(text).name, "text", corpora.open_text(text)
        if self.run is None:
            raise RequestError(f"{self.path} is a packed model and has no corpus: name a text with --text")
        corpus = corpora.open_corpus(self.run.recipe.corpus)
        split = "valid" if split is None else split
        return corpus.name, split, corpus.split(split)

    def describe(self) -> dict[str, Any]:
        """What a figure says of the model."""
        return {"kind": self.kind, "parameters": count_parameters(self.model), **self.facts}

    @overload
    def generate(
        self, prompt: bytes = b"", length: int = 200, *, stream: Literal[True], **how: Any
    ) -> Iterator[int]: ...

    @overload
    def generate(
        self, prompt: bytes = b"", length: int = 200, *, stream: Literal[False] = False, **how: Any
    ) -> bytes: ...

    def generate(
        self, prompt: bytes = b"", length: int = 200, *, stream: bool = False, **how: Any
    ) -> bytes | Iterator[int]:
        """`length` bytes that go on from the prompt; `stream=True` gives them one by one.

        `how`: temperature, top_k, top_p, seed.
        """
        if not isinstance(prompt, bytes | bytearray | memoryview):
            raise TypeError(f"generate takes bytes, not {type(prompt).__name__}")
        if length < 0:
            raise RequestError(f"--bytes {length}: must not be negative")
        written = islice(write(self.model, bytes(prompt), Sampling(**how), self.tokens), length)
        return written if stream else bytes(written)

    def save(self, path: str | Path) -> int:
        """Pack the model into one file that `load` and every command take; its size in bytes."""
        about = {"kind": self.kind, "tokens": kinds.described(self.tokens), "facts": self.facts}
        return pack.write(Path(path), self.model, about)

    def require_bytes(self, what: str) -> None:
        """Refuse what is only defined for models of bytes."""
        if not isinstance(self.tokens, Bytes):
            raise RequestError(f"{what} is of models of bytes: the tokens of {self.path} are {self.tokens.kind}")


@dataclass(frozen=True)
class Saved:
    """A model as it was saved, and what belongs to it."""

    model: Model
    kind: str
    facts: dict[str, Any]
    """`step` of the checkpoint and `sha256` of its weights."""
    tokens: Tokens


def load(path: str | Path, *, checkpoint: str | int | None = None, device: str | None = None) -> LanguageModel:
    """The model of a run (its best checkpoint, else the last) or of a packed file."""
    path = Path(path)
    where = devices.choose(device).name
    saved = read_model(path, None if checkpoint is None else str(checkpoint))
    return LanguageModel(saved, path, where, None if path.is_file() else Run(path))


def read_model(path: Path, which: str | None = None) -> Saved:
    """The model of a checkpoint or of a packed file."""
    if path.is_file():
        if which is not None:
            raise RequestError(f"--checkpoint {which}: {path} is a packed model and has no checkpoints")
        return Saved(*pack.read(path))
    run = Run.existing(path)
    step = run.choose(which)
    saved = checkpoints.read(run.checkpoints, step)
    table = saved.record["recipe"]["model"]  # verified, unlike the file beside it
    changed = differences({"model": dict(run.recipe.to_dict()["model"])}, {"model": table})
    if changed:
        raise RequestError(f"{run.recipe_file} is not the recipe that this run was trained with: {'; '.join(changed)}")
    tokens = run.tokens
    cls, config = configure(table, tokens.vocabulary)
    model = cls.blank(config)
    model.load_state_dict(dict(saved.model))
    return Saved(model, table["kind"], {"step": step, "sha256": saved.model_sha256}, tokens)

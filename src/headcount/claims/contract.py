"""One contract for every claim: what a paper says, how it is tested here, and a run that measures it.

A claim measures a record (plain data, all there is to know), and computes from the record alone what is to be said: a
verdict in words and the sections of a page. No sentence of a verdict is written before its numbers are there. What a
claim trains are ordinary runs in its folder, so that a second call goes on where the first one stopped.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from headcount import durable
from headcount.errors import RequestError
from headcount.learn import device as devices
from headcount.show.page import Section, escape, page
from headcount.tables import CorpusTable
from headcount.version import __version__

RECORD, PAGE = "claim.json", "claim.html"
"""What a claim leaves in its folder, beside its runs."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a claim is tested on, and what that may cost."""

    corpus: CorpusTable
    folder: Path
    minutes: float | None = None
    """The whole budget."""
    bytes: int | None = None
    """Or the bytes that a training reads."""
    set: Sequence[str] = ()
    """`table.key=value`, over the recipe of what is trained."""
    device: str | None = None

    def command(self, claim: str) -> list[str]:
        """What asks for this again."""
        words = ["headcount", "claim", claim]
        words += [word for path in self.corpus.paths for word in ("--text", path)] or ["--corpus", self.corpus.name]
        options = {"run": self.folder, "minutes": self.minutes, "bytes": self.bytes, "device": self.device}
        words += [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
        return words + [word for setting in self.set for word in ("--set", setting)]


@dataclass(frozen=True)
class Result:
    """What came out."""

    record: Mapping[str, Any]
    """JSON-able; the verdict is in it."""
    verdict: str
    sections: Sequence[Section]


class Claim(ABC):
    """Base of every claim."""

    name: ClassVar[str]
    source: ClassVar[str]
    """The paper and its sections."""
    says: ClassVar[str]
    """What the paper says, in our words, one sentence."""
    tested: ClassVar[str]
    """How that is tested, one sentence."""

    @abstractmethod
    def measure(self, setting: Setting) -> dict[str, Any]:
        """Train what is needed and is not there yet, and measure it."""

    @abstractmethod
    def verdict(self, record: Mapping[str, Any]) -> str:
        """What the numbers say of the claim, computed: the answer first, an empty line, what it rests on."""

    @abstractmethod
    def sections(self, record: Mapping[str, Any]) -> list[Section]:
        """The numbers as parts of a page."""

    def about(self) -> dict[str, str]:
        """What is known before anything is measured."""
        return {"claim": self.name, "source": self.source, "says": self.says, "tested": self.tested}

    def run(self, setting: Setting) -> Result:
        """Test the claim, and leave the record and the page in the folder."""
        if setting.minutes is not None and setting.bytes is not None:
            raise RequestError("--minutes and --bytes contradict each other: give one")
        if setting.minutes is not None and not 0 < setting.minutes < float("inf"):
            raise RequestError(f"--minutes {setting.minutes}: must be above 0")
        if setting.bytes is not None and setting.bytes < 1:
            raise RequestError(f"--bytes {setting.bytes}: must be above 0")
        devices.choose(setting.device)  # one that is not there is refused before anything is made
        asked = {"command": shlex.join(setting.command(self.name)), "version": __version__}
        measured = {**self.about(), **asked, **self.measure(setting)}
        verdict = self.verdict(measured)
        record = {**measured, "verdict": verdict}
        sections = [self._opening(verdict), *self.sections(record)]
        durable.write_json(setting.folder / RECORD, record)
        durable.write_text(setting.folder / PAGE, page(f"Headcount: the claim “{self.name}”", sections))
        return Result(record, verdict, sections)

    def _opening(self, verdict: str) -> Section:
        """What is claimed and what came out, first of all."""
        paragraphs = "".join(f"<p>{escape(part)}</p>" for part in verdict.split("\n\n"))
        about = f"{escape(self.source)}: {escape(self.says)}<br>Here: {escape(self.tested)}"
        return Section("What is claimed, and what came out", about, paragraphs)

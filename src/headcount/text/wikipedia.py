"""Evergreen WikiText: a corpus from today's Wikipedia, of any language, that can be built again at any time.

A dump is streamed; every article becomes `= Title =`, an empty line, its markup as it is or rendered to text, an empty
line. Where an article goes is decided by the hash of its title alone: it stays in its part when the dump grows.
A dump of a few articles may leave a part empty; then the text of the largest part is divided, and the manifest says so.
The same dump gives the same bytes. A build that was stopped goes on: the dump is unpacked again up to where it stopped,
but nothing before that place is parsed, rendered or written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from headcount import durable
from headcount.errors import DataError, RequestError
from headcount.text import archives, characters, mapped, prepared
from headcount.text.cache import cache_folder, making
from headcount.text.dumps import Article, Dump
from headcount.text.prepared import SPLITS, Counts
from headcount.text.progress import say, shown
from headcount.text.sources import Bytes, file_sha256, map_file
from headcount.text.wikimarkup import render, words_of_namespaces
from headcount.version import __version__

RULES = 3
"""Raised whenever the same dump gives other bytes or parts: what older rules made stays as it is, and is not used."""
RULE = "sha256 of the title, its first 8 bytes as a share: below 0.90 train, below 0.95 valid, else test"
SHARES = {"train": 0.90, "valid": 0.05, "test": 0.05}
MOST_SEARCHED = 1 << 20
"""Bytes before a share's end in which the end of a line is looked for."""
SAVE_EVERY = 1 << 26
"""Bytes of uncompressed XML between two states that a stopped build goes on from."""


def split_of(title: str) -> str:
    """The part that an article belongs to, whatever dump it is in."""
    share = int.from_bytes(hashlib.sha256(title.encode()).digest()[:8]) / 2**64
    return "train" if share < 0.90 else "valid" if share < 0.95 else "test"


def form_of(article: Article, dropped: frozenset[str] | None) -> str:
    """An article as it stands in the corpus; `dropped` are the namespaces whose links go when it is rendered."""
    text = article.text if dropped is None else render(article.text, dropped)
    return f"= {article.title} =\n\n{text}\n\n"


@dataclass
class State:
    """How far a build has come: what is written of every part, and where in the XML its last article begins."""

    parts: dict[str, dict[str, int]] = field(
        default_factory=lambda: {split: {"bytes": 0, "articles": 0} for split in SPLITS}
    )
    redirects: int = 0
    other_pages: int = 0
    header: int = 0
    place: int = 0
    made_by: str = __version__


def is_ready() -> bool:
    """Whether any dump was prepared."""
    return bool(built())


def built() -> list[Path]:
    """The prepared files in the cache, of the rules of today."""
    return sorted(file.with_suffix("") for file in cache_folder().glob(f"wikipedia-*-rules{RULES}.json"))


def find(paths: Sequence[str]) -> Path:
    """The prepared file that is named, or that is made of the dump that is named, or the only one there is."""
    if len(paths) > 1:
        raise RequestError("corpus.path: name one dump, or one file that `headcount corpus wikipedia` made")
    if paths:
        path = Path(paths[0])
        if prepared.manifest_file(path).is_file():
            return path
        if path.is_dir():
            return prepared.brought_back(path, "wikipedia")
        kept = build(path)
        if divided := (prepared.read_manifest(kept) or {}).get("divided"):
            say(divided)
        return kept
    there = built()
    if len(there) == 1:
        return there[0]
    if there:
        named = "; ".join(f"{path} ({_made_of(path)})" for path in there)
        raise RequestError(f"there are several: say which with corpus.path (headcount corpus: --from): {named}")
    raise RequestError("no dump was prepared yet: headcount corpus wikipedia --dump FILE.xml.bz2")


def _made_of(path: Path) -> str:
    """The dump's file and the form of a prepared one."""
    manifest = prepared.read_manifest(path) or {}
    dump = manifest.get("dump", {})
    return f"{manifest.get('form', 'unknown form')} of {dump.get('file') or str(dump.get('sha256'))[:12]}"


def build(dump: Path, form: str = "markup") -> Path:
    """The corpus of a dump, made unless it is there."""
    map_file(dump)
    identity = file_sha256(dump)
    with making(f"wikipedia-{identity[:12]}-{form}-rules{RULES}") as kept:
        if not prepared.is_whole(kept):
            work = kept.with_name(f".{kept.name}.part")
            try:
                state = _Build(dump, form, work).run()
                of = {"file": dump.name, "sha256": identity, "bytes": dump.stat().st_size}
                _write(kept, work, state, {"form": form, "dump": of})
            except (RequestError, DataError):  # these bytes will never give a corpus: there is nothing to go on with
                shutil.rmtree(work)
                raise
            shutil.rmtree(work)
        return kept


def _write(kept: Path, work: Path, state: State, known: Mapping[str, Any]) -> None:
    """The prepared file of the three that a build left, and its manifest."""
    sizes = {split: state.parts[split]["bytes"] for split in SPLITS}
    pieces = divide(work, sizes)
    parts: dict[str, tuple[Iterator[bytes], Counts]] = {}
    for split, (of, begin, end) in pieces.items():
        # Articles that are cut are counted where their dump's rule put them, not once for each part.
        counts = {"articles": state.parts[split]["articles"]} if sizes[split] else {}
        parts[split] = prepared.counted(mapped.chunks(map_file(work / of)[begin:end]), counts), counts
    facts: dict[str, Any] = {"corpus": "wikipedia", **known, "rules": RULES, "split": RULE}
    if empty := [split for split in SPLITS if not sizes[split]]:
        of = pieces[empty[0]][0]
        facts["divided"] = (
            f"no title's hash falls into {' or '.join(empty)}: the text of {of} is divided at ends of lines among "
            f"{', '.join(split for split in SPLITS if split in (of, *empty))}, so articles are cut in two"
        )
    prepared.write(kept, parts, {**facts, "redirects": state.redirects, "other_pages": state.other_pages})


def divide(work: Path, sizes: Mapping[str, int]) -> dict[str, tuple[str, int, int]]:
    """Of which file every part is, from where to where: its own file, or its share of the largest if one is empty."""
    pieces = {split: (split, 0, sizes[split]) for split in SPLITS}
    empty = [split for split in SPLITS if not sizes[split]]
    if not empty:
        return pieces
    largest = max(SPLITS, key=lambda split: sizes[split])
    sharing = [split for split in SPLITS if split in (largest, *empty)]
    text, begin, done = map_file(work / largest), 0, 0.0
    for split in sharing:
        done += SHARES[split] / sum(SHARES[one] for one in sharing)
        end = len(text) if split == sharing[-1] else _line_end(text, round(done * len(text)))
        pieces[split] = largest, begin, end
        begin = end
    return pieces


def _line_end(text: Bytes, place: int) -> int:
    """The last place before this one where a line ends, if one is near; else where a word does, else a character."""
    low = max(0, place - min(len(text) // 50, MOST_SEARCHED))
    before = text[low:place].tobytes()
    for end in (b"\n", b" "):
        if end in before:
            return low + before.rindex(end) + 1
    return characters.character_cut(text, low, place)


class _Build:
    """Three files in a folder of work, and a state beside them that they can be cut back to."""

    def __init__(self, dump: Path, form: str, work: Path) -> None:
        self.dump, self.form, self.work = dump, form, work
        work.mkdir(exist_ok=True)
        durable.sweep(work)
        self.state = self._read_state()
        self.before = self.state.redirects, self.state.other_pages

    def run(self) -> State:
        """Write all articles, from the beginning or from where an earlier build stopped."""
        state, reading = self.state, Dump(self.dump)
        with ExitStack() as stack:
            show = stack.enter_context(shown(f"reading {self.dump.name}", self.dump.stat().st_size))
            files = {split: stack.enter_context((self.work / split).open("ab")) for split in SPLITS}
            for split, file in files.items():
                file.truncate(state.parts[split]["bytes"])
            chunks = archives.only_file(self.dump, show)
            if state.place:
                say(f"going on at byte {state.place:,} of the XML")
            saved = state.place
            for article in reading.articles_from(chunks, state.header, state.place):
                self._write(article, files, words_of_namespaces(reading.namespaces))
                if article.place - saved >= SAVE_EVERY:
                    saved = article.place
                    state.header = reading.header or 0
                    self._save(files)
        self._count(reading.redirects, reading.other_pages)
        if not any(part["articles"] for part in state.parts.values()):
            raise RequestError(f"{self.dump} holds no article")
        return state

    def _write(self, article: Article, files: Mapping[str, BinaryIO], dropped: frozenset[str]) -> None:
        text = form_of(article, dropped if self.form == "text" else None)
        split = split_of(article.title)
        part, content = self.state.parts[split], text.encode()
        files[split].write(content)
        part["bytes"] += len(content)
        part["articles"] += 1
        self.state.place = article.place
        self._count(*article.passed)

    def _count(self, redirects: int, other_pages: int) -> None:
        self.state.redirects, self.state.other_pages = self.before[0] + redirects, self.before[1] + other_pages

    def _save(self, files: Mapping[str, BinaryIO]) -> None:
        """The parts reach the disk before the state that speaks of them."""
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
        durable.write_json(self.work / "state.json", asdict(self.state))

    def _read_state(self) -> State:
        """The state of an earlier build; the beginning if there is none, or if it does not fit what is there."""
        try:
            state = State(**json.loads((self.work / "state.json").read_text()))
            whole = all((self.work / split).stat().st_size >= state.parts[split]["bytes"] for split in SPLITS)
        except (OSError, ValueError, TypeError, KeyError):
            return State()
        return state if whole and state.made_by == __version__ else State()

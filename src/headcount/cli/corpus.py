"""headcount corpus."""

from __future__ import annotations

import json as jsons
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headcount.cli.options import STANDARD_INPUT, Json

if TYPE_CHECKING:
    from headcount.tables import CorpusTable
    from headcount.text.corpora import Corpus


def corpus(
    name: Annotated[
        str | None,
        Parameter(help="one of `headcount corpora`; or a file, folder, glob or archive of your own, or - (piped in)"),
    ] = None,
    /,
    *,
    from_: Annotated[
        tuple[str, ...], Parameter(name="--from", consume_multiple=True, help="where its file or files lie; or -")
    ] = (),
    dump: Annotated[Path | None, Parameter(help="wikipedia: the dump, .xml or packed")] = None,
    text: Annotated[bool, Parameter(negative="", help="wikipedia: render the markup to text")] = False,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="also write train.txt, valid.txt and test.txt here")
    ] = None,
    json: Json = False,
) -> None:
    """Prepare a corpus: find or fetch it, verify it, unpack it, say where it lies and how to train on it."""
    from headcount.errors import RequestError
    from headcount.text import corpora, wikipedia

    if name is None and len(from_) > 1:  # it took all that followed
        from_, name = from_[:-1], from_[-1]
    if name is None:
        raise RequestError("name a corpus (`headcount corpora` lists them) or a text")
    if name != "wikipedia" and (dump is not None or text):
        raise RequestError("--dump and --text belong to wikipedia")
    if dump is not None:
        if from_:
            raise RequestError("name one of --dump and --from: a dump to prepare, or what was prepared")
        from_ = (str(wikipedia.build(Path(_piped(str(dump))), "text" if text else "markup")),)
    elif text:
        raise RequestError("--text renders a dump: name it with --dump")
    table = _table(_piped(name), tuple(map(_piped, from_)))
    found = corpora.open_corpus(table)
    if output is not None:
        corpora.export(found, output)
    facts = {"path": str(found.file), **found.manifest()}
    if json:
        print(jsons.dumps(facts))
        return
    print(f"{found.file}\n{found.ends[-1]:,} bytes, sha256 {found.sha256}")
    for part, counts in facts["parts"].items():
        print(f"{part:<6} " + ", ".join(f"{count:,} {what}" for what, count in counts.items()), flush=True)
    if "divided" in facts:
        print(facts["divided"], flush=True)
    _say_how_to_train(found)


def _piped(path: str) -> str:
    """A path; standard input becomes a file in the cache."""
    from headcount.text.corpora import keep_piped

    return str(keep_piped(sys.stdin.buffer)) if path == STANDARD_INPUT else path


def _table(name: str, paths: tuple[str, ...]) -> CorpusTable:
    """The corpus as a recipe would name it; what is no known name is a path."""
    from headcount.errors import RequestError, nearest
    from headcount.tables import CorpusTable
    from headcount.text import sources
    from headcount.text.corpora import CORPORA

    if name in CORPORA:
        return CorpusTable(name=name, path=paths or None)
    if sources.gone([name]):
        raise RequestError(f"{name} is no corpus and no file: {nearest(name, CORPORA)}")
    if paths:
        raise RequestError(f"--from says where a corpus with a name lies; {name} is a path itself")
    return CorpusTable(path=name)


def _say_how_to_train(found: Corpus) -> None:
    from headcount.text.cache import cache_folder
    from headcount.text.progress import say

    if (lacks := found.lacks()) is not None:
        say(f"\nno model can be trained on it: {lacks}")
        return
    if found.name == "text":
        say(f"\n  headcount train {shlex.quote(str(found.file))}")
        return
    place = f" --set corpus.path={shlex.quote(str(found.file))}"
    by_name = found.name == "stdlib" or found.file == cache_folder() / found.name
    command = f"headcount train recipes/desk/sha_rnn.toml --set corpus.name={found.name}"
    say(f"\n  {command}{'' if by_name else place} --minutes 10")

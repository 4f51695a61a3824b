"""The command line: one file per command, each a thin wrapper that imports what it needs when it runs.

Data goes to standard output, everything said to a person to standard error. Exit codes: 0 done, 2 the request is wrong
(nothing was created), 3 the data is damaged, 4 training failed, 73 somebody else holds the run, 130/143 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError

from headcount import __version__
from headcount.cli.options import STANDARD_INPUT, STANDARD_OUTPUT
from headcount.errors import HeadcountError
from headcount.learn.malloc import keep_freed_memory

COMMANDS = {
    "demo": "two minutes on the embedded corpus, end to end",
    "train": "train a recipe, or texts with a recipe sized to them",
    "resume": "go on with a run, exact to the bit",
    "evaluate": "bits per byte, with the protocol it was measured by",
    "generate": "let a model write",
    "score": "bits for every byte of a text; --html colours it",
    "report": "one HTML page on a run or several",
    "compare": "runs side by side",
    "table": "the papers' tables, and our runs beside them",
    "convert": "a figure in bits per byte, perplexity per word …",
    "recl": "how far back runs gain from what they read",
    "probe": "does a model copy what it read once, long before?",
    "claims": "what the papers claim, as experiments",
    "claim": "test a claim: train what it needs, measure, and judge",
    "inspect": "where the heads look, what units follow",
    "info": "parameters, heads, state, FLOPs and published figures",
    "models": "the models there are",
    "corpora": "the corpora there are",
    "corpus": "prepare a corpus: find or fetch it, verify it, unpack it",
    "pack": "a finished model in one file",
}

PAGES = ("score", "inspect", "report", "compare", "evaluate", "probe")
"""Commands that write a page, which `-o -` sends to standard output."""

READERS = ("train", "generate", "score", "inspect", "corpus")
"""Commands that read standard input where a lone `-` stands in the place of a text."""

OUT_OF_MEMORY = "out of memory: lower batches.streams, batches.segment, model.width or the window"

app = App(
    name="headcount",
    version=__version__,
    help="Train, measure and use byte-level language models on one machine.",
    help_format="plaintext",
)
for _order, (_name, _help) in enumerate(COMMANDS.items()):
    # Imported when it is run: `headcount --help` loads no command and no torch.
    app.command(f"headcount.cli.{_name}:{_name}", name=_name, help=_help, sort_key=_order)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever goes wrong is one sentence."""
    given = _name_streams(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _say(f"{error}\nheadcount --help shows what there is.".strip(), 2)
    except HeadcountError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except BrokenPipeError:
        # The reader has gone, which is its right. What is buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _say(OUT_OF_MEMORY, 4)
    except OSError as error:
        return _say(f"{error.filename or 'the system says'}: {error.strerror or error}", 2)
    except Exception as error:
        if isinstance(error, RuntimeError) and "alloc" in str(error):  # how torch says it
            return _say(OUT_OF_MEMORY, 4)
        if os.environ.get("HEADCOUNT_TRACEBACK"):
            traceback.print_exc()
        return _say(
            f"a fault of ours, please report it: {type(error).__name__}: {error} (HEADCOUNT_TRACEBACK=1 shows where)", 1
        )
    return 0


def _name_streams(arguments: Sequence[str]) -> list[str]:
    """A lone `-` where a text is expected, or a page is to go: the parser would take it for an option."""
    named = list(arguments)
    for place, argument in enumerate(named):
        before = named[place - 1] if place else ""
        if argument != "-":
            continue
        if before in ("-o", "--output") and named[0] in PAGES:
            named[place] = STANDARD_OUTPUT
        elif named[0] in READERS:
            is_text = before in ("--from", "--dump") and named[0] == "corpus"
            is_value = before.startswith("-") and before not in ("--json", "--html", "--text") and not is_text
            named[place] = argument if is_value else STANDARD_INPUT
    return named


def _say(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError):  # who was to read it may be gone
        print(f"headcount: {sentence}", file=sys.stderr, flush=True)
    return code


def main() -> None:
    """The entry point: streams that are closed or speak only ASCII must not be what a command fails of."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (for the whole process)
        else:
            stream.reconfigure(errors="backslashreplace")
    keep_freed_memory()
    sys.exit(run())

"""What can go wrong, by whose fault it is. Each kind knows the exit code that the command line gives it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeadcountError(Exception):
    """Something that a person can understand and act on; the command line prints its sentence and no traceback."""

    exit_code = 1


class RequestError(HeadcountError):
    """The request is wrong: nothing was created."""

    exit_code = 2


class DataError(HeadcountError):
    """The data is damaged: a file is not what its hash says."""

    exit_code = 3


class TrainingError(HeadcountError):
    """Training failed: numbers that are not finite, or a disk that takes no more checkpoints."""

    exit_code = 4


class BusyError(HeadcountError):
    """Somebody else holds the run."""

    exit_code = 73


class Interrupted(HeadcountError):  # noqa: N818 (not an error: the run is saved)
    """A signal asked the run to stop; what was learnt is saved."""

    def __init__(self, signal_number: int, sentence: str = "interrupted") -> None:
        super().__init__(sentence)
        self.exit_code = 128 + signal_number


def nearest(word: str, known: Iterable[str], inside: str = "") -> str:
    """A half-sentence that suggests what `word` was meant to be, or lists what there is `inside` a folder."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {inside + close[0]!r}?"
    return f"there is: {', '.join(inside + name for name in names)}" if names else "there is none"

"""What a row of the fault table gives: how often it was tried, how often it went right, and what went wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """A count that a failed assertion lowers; the first few failures are kept."""

    tried: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def one(self, name: object) -> Iterator[None]:
        """Try one thing: what is raised inside counts as wrong and does not stop the campaign."""
        self.tried += 1
        try:
            yield
        except Exception as error:  # whatever it is, it is not what the row promises
            said = str(error).splitlines()[0] if str(error) else "failed"
            self.wrong.append(f"{name}: {type(error).__name__}: {said}")
        else:
            self.right += 1

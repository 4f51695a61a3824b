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
        """Try one thing: an assertion that fails inside counts as wrong and does not stop the campaign."""
        self.tried += 1
        try:
            yield
        except AssertionError as error:
            self.wrong.append(f"{name}: {str(error).splitlines()[0] if str(error) else 'assertion failed'}")
        else:
            self.right += 1

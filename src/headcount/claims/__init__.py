"""What the papers claim, by name, each as an experiment. The table is lazy: a file is imported when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from headcount.errors import RequestError, nearest

if TYPE_CHECKING:
    from headcount.claims.contract import Claim

CLAIMS: Mapping[str, str] = {
    "tokenisation": "headcount.claims.tokenisation:Tokenisation",
}


def claim_called(name: str) -> Claim:
    """The claim behind a name."""
    if name not in CLAIMS:
        raise RequestError(f"there is no claim {name!r}: {nearest(name, CLAIMS)}")
    module, _, attribute = CLAIMS[name].partition(":")
    found: Claim = getattr(import_module(module), attribute)()
    return found

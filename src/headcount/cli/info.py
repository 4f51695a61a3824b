"""headcount info."""

from __future__ import annotations

import json as jsons
from typing import Annotated, Any

from cyclopts import Parameter

from headcount.cli.options import Json


def info(
    what: Annotated[str, Parameter(help="a recipe (.toml), a run folder or a packed file")],
    /,
    *,
    json: Json = False,
) -> None:
    """Parameters, heads, state, FLOPs and the published figures, without allocating the weights."""
    from headcount.use.describe import describe

    facts = describe(what)
    if json:
        print(jsons.dumps(facts))
        return
    published = facts.pop("published", {})
    for name, value in facts.items():
        beside = f"   (published: {_shown(published.pop(name))})" if name in published else ""
        print(f"{name.replace('_', ' '):<28}{_shown(value)}{beside}")
    for name, value in published.items():
        print(f"{'published ' + name:<28}{_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(inner)}" for key, inner in value.items())
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

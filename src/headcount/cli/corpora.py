"""headcount corpora."""

from __future__ import annotations

import json as jsons

from headcount.cli.options import Json


def corpora(*, json: Json = False) -> None:
    """List the corpora that are known by name, and whether they are here."""
    from headcount.text.corpora import CORPORA

    found = {name: {"about": entry.about, "here": entry.ready()} for name, entry in CORPORA.items()}
    if json:
        print(jsons.dumps(found))
        return
    for name, facts in found.items():
        print(f"{name:<18}{'here' if facts['here'] else 'not yet':<10}{facts['about']}")

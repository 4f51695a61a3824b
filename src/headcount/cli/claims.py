"""headcount claims."""

from __future__ import annotations

import json as jsons

from headcount.cli.options import Json


def claims(*, json: Json = False) -> None:
    """List the claims of the papers that can be tested here."""
    from headcount.claims import CLAIMS, claim_called

    found = {name: claim_called(name).about() for name in CLAIMS}
    if json:
        print(jsons.dumps(found))
        return
    widest = max(map(len, found))
    for name, about in found.items():
        print(f"{name:<{widest}}  {about['says']} ({about['source']})")

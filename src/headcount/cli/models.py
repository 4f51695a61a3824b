"""headcount models."""

from __future__ import annotations

import json as jsons

from headcount.cli.options import Json


def models(*, json: Json = False) -> None:
    """List the models: their names in `[model] kind`, and what they are."""
    from headcount.models import MODELS, model_class

    found = {name: (model_class(name).__doc__ or "").splitlines()[0] for name in MODELS}
    if json:
        print(jsons.dumps(found))
        return
    widest = max(map(len, found))
    for name, about in found.items():
        print(f"{name:<{widest}}  {about}")

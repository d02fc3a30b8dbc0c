"""A campaign small enough to be trained in a test."""

from __future__ import annotations

import tiny

from drift.claims.campaign.execute import Folders
from drift.claims.campaign.plan import Plan


def small_plan(folder, **changes):
    item = {
        "name": "tiny-ima",
        "paper": "ima",
        "item": "Table I",
        "value": 1,
        "experiment": str(tiny.written(folder)),
        "set": ["rounds=6"],
        "reason": "six rounds, for a test",
        "claims": ["ima-accuracy-fedavg", "fedlaw-coherence-falls"],
        "rows": [
            {"set": ["method=fedavg"], "seeds": 2, "minutes": 1},
            {"set": ["method=ima", "method.window=2", "method.start=4"], "seeds": 2, "minutes": 1},
        ],
    }
    return Plan.model_validate({"processor": "any", "items": [{**item, **changes}]})


def places(folder):
    return Folders(folder / "runs", folder / "files")

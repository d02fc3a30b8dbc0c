"""Files of format 1: every series of every round under "series", metrics among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from drift.claims.campaign import series

BLOCKED = {"local_loss", *(name for names in series.ANALYSES.values() for name in names)}
DERIVED = {"round", "seconds", "coherence", "coherence_smooth", "client_share", "sigma"}


def from_1(content: Mapping[str, Any], numbers: Callable[[Any], np.ndarray]) -> dict[str, Any]:
    """The content of a file of format 1 as that of format 2; norms, locality and the critical point are not in it."""
    columns = {name: numbers(values) for name, values in content["series"].items()}
    rounds = columns["round"].astype(int).tolist()
    block = series.block_size(len(rounds))
    metrics = {name: values for name, values in columns.items() if name not in BLOCKED | DERIVED}
    about = ("name", "label", "hash", "experiment", "versions", "processor")
    return {
        "format": 2,
        **{name: content[name] for name in about},
        "rounds": len(rounds),
        "block": block,
        "measured": series.measured(metrics, rounds),
        "blocks": {name: series.means(values, block) for name, values in columns.items() if name in BLOCKED},
        "points": {},
        "seconds": series.sums(columns["seconds"]) if "seconds" in columns else [],
        "results": content["results"],
    }

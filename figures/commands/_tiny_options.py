"""Options with which every figure of the gallery is drawn in seconds: few points, rounds, draws."""

from __future__ import annotations

import inspect
from typing import Any

from figures import gallery

LEAST: dict[str, float] = {
    "batches": 2,
    "cka_rounds": 2,
    "count": 4,
    "directions": 2,
    "draws": 1,
    "k": 2,
    "lines": 2,
    "most": 3,
    "points": 5,
    "probes": 1,
    "products": 6,
    "replicates": 2,
    "rounds": 2,
    "samples": 20,
    "samples_per_client": 10,
    "steps": 5,
    "subsets": 2,
}
"""Values of options by name, for figures where they are numbers and not smaller by themselves."""

TINY: dict[str, dict[str, Any]] = {
    "basin-rounds": {"points": 7},
    "hessian-density": {"points": 501},
    "lines-fma-ima": {"points": 7, "window": 3},
    "lines-globals": {"points": 7},
    "planes-adaptive": {"points": 17, "tolerance": 0.5},
    "planes-settings": {"points": 4, "most": 2},
    "planes-statistics": {"points": 3},
    "simplex-optima": {"step": 0.25, "extend": 0.25, "rounds": 3},
    "simplex-settings": {"step": 0.25, "extend": 0.25, "rounds": 3},
    "simplex-weights": {"step": 0.2},
    "topology-rounds": {"points": 9},
}
"""Where a figure takes other values than these, by its name."""


def options(name: str) -> dict[str, Any]:
    """Options of a figure's data() that cost least and still show what it shows."""
    accepted = inspect.signature(gallery.load(name).data).parameters
    defaults = {option: parameter.default for option, parameter in accepted.items()}
    low = {
        option: least
        for option, least in LEAST.items()
        if isinstance(defaults.get(option), int | float) and least < defaults[option]
    }
    return {**low, **TINY.get(name, {})}

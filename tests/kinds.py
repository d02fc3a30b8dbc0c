"""One plug-in of each kind by default, and all of them by `make test ARGS='-m ""'`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

METHODS = ("fedavg", "fedprox", "scaffold", "fedadam", "ima", "fedlaw", "feddf", "fedrep", "fedbn", "lss", "fedfomo")
"""Methods of each kind: plain, another local loss, state of clients, an optimiser of the server, a wrapper, learned
weights, training of the server, private parts, batch statistics, a pool of models, models that clients choose among."""

FEW = ("fedavg", "scaffold", "fedadam", "ima", "fedlaw", "lss", "fedbn")
"""Those of them that an analysis may tell from one another though it asks no method who it is."""

QUICK = {
    "points": 5,
    "step": 0.25,
    "steps": 5,
    "repeats": 1,
    "draws": 1,
    "products": 6,
    "count": 4,
    "starts": (0,),
}
"""Options that make analyses fast; none changes what they compute but its fineness."""


FINE = 101
"""Values of the grid of a density, which has to resolve its Gaussian."""


def quick(analysis: Any, **more: Any) -> dict[str, Any]:
    """The values of an analysis's options that make it fast, from `QUICK` and more."""
    chosen = {**QUICK, **more, **({"points": FINE} if "density" in analysis.name else {})}
    return {name: value for name, value in chosen.items() if name in analysis.options}


def one_of_each(values: Iterable[Any], kinds: Collection[Any] = METHODS) -> list[Any]:
    """Values of a parametrised test; those that are of a kind with others are slow."""
    packed = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*value, marks=() if value in kinds or value[0] in kinds else pytest.mark.slow) for value in packed
    ]

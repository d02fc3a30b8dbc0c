"""What a round of a recorder is given: refused where it is of another kind, by the name of the argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.record.flat_arrays import MODELS, array, is_model

CLIENTS = "{client: (model, number of samples)}"
NUMBERS = "numbers by name, as in {'accuracy': 0.9}, NaN where there is none"
FRACTIONS = ("accuracy", "own_accuracy", "error")
"""Numbers that are fractions of samples, in tables and pictures too."""


def round_numbers(clients: Any, end: Any, start: Any, metrics: Any) -> dict[str, np.ndarray]:
    """Numbers () of a round by the names of their arrays.

    Raises:
        ValueError: If one is no number or has no name, a client no (model, number of samples), or a global model none.
    """
    for name, model in (("end", end), ("start", end if start is None else start)):
        if not is_model(model):
            raise ValueError(f"{name} is a {type(model).__name__}; give {MODELS}.")
    if not isinstance(clients, Mapping):
        raise ValueError(f"clients is a {type(clients).__name__}; give {CLIENTS}, {{}} where none is recorded.")
    for client, entry in clients.items():
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise ValueError(f"clients[{client!r}] is a {type(entry).__name__}; give a pair, as in {CLIENTS}.")
        size = entry[1].item() if np.ndim(entry[1]) == 0 and hasattr(entry[1], "item") else entry[1]
        if not isinstance(size, int | float) or not 0 <= size < 1 << 63 or size != int(size):
            raise ValueError(
                f"client {client!r} has {size!r} samples; give a whole number, 0 or more, as in {CLIENTS}."
            )

    if metrics is not None and not isinstance(metrics, Mapping):
        raise ValueError(f"metrics is a {type(metrics).__name__}; give {NUMBERS}.")
    numbers = {name: array(value) for name, value in (metrics or {}).items()}
    for name, number in numbers.items():
        if not isinstance(name, str) or not name or number.size != 1 or number.dtype.kind not in "biuf":
            raise ValueError(f"metrics has {name!r}: {number.tolist()!r:.60}; give {NUMBERS}.")
        if name in FRACTIONS and not np.isnan(number.item()) and not 0 <= number.item() <= 1:
            raise ValueError(f"{name} is {number.item():g}; give a fraction between 0 and 1, as 0.853 for 85.3 %.")
    return {f"metric.{name}": np.array(float(number.item())) for name, number in numbers.items()}

"""Whether two runs have the same bits."""

from __future__ import annotations

import math

import torch

from drift.runs.run import Run
from drift.store import files

TENSORS = ("ids", "sizes", "weights", "gram", "start", "end", "clients", "start_buffers", "end_buffers")


def difference(first: Run, second: Run) -> str:
    """What differs between two runs; "" where every round and the state have the same bits."""
    if first.rounds() != second.rounds():
        return f"rounds {first.rounds()} and {second.rounds()}"
    for index in first.rounds():
        one, two = first.round(index), second.round(index)
        for name in TENSORS:
            if not torch.equal(getattr(one, name), getattr(two, name)):
                return f"{name} of round {index}"
        for name in ("extras", "sent", "carried"):
            if files.digest(getattr(one, name)) != files.digest(getattr(two, name)):
                return f"{name} of round {index}"
        for name in (one.metrics.keys() | two.metrics.keys()) - {"seconds"}:
            a, b = one.metrics.get(name, math.inf), two.metrics.get(name, -math.inf)
            if a != b and not (math.isnan(a) and math.isnan(b)):
                return f"{name} of round {index}"
    return "" if files.digest(first.state()[0]) == files.digest(second.state()[0]) else "the state"

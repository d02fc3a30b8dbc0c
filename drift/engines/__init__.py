"""Engines decide where and how the cohort's local trainings run; what they compute is the same but for rounding.

serial    one client after the other in this process; the reference, bit for bit reproducible
batched   the clients as rows of one computation; equal to serial but for rounding
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from drift.client import Client, Update
from drift.method import Method

NAMES = ("serial", "batched")


@dataclass(frozen=True)
class Trained:
    """A cohort's updates in the order of its clients.

    Args:
        updates: One a client.
        useful: Share of the computed samples that was no padding, 0-1; None where nothing is padded.
    """

    updates: list[Update]
    useful: float | None = None


def train(engine: str, method: Method, clients: Iterable[Client]) -> Trained:
    """Local training of each client by the engine called `engine`.

    Raises:
        ValueError: If there is no such engine.
    """
    if engine == "serial":
        from drift.engines import serial

        return Trained(serial.train(method, clients))
    if engine == "batched":
        from drift.engines import batched

        return Trained(*batched.train(method, clients))
    raise ValueError(f"no engine named {engine!r}; known: {', '.join(NAMES)}.")

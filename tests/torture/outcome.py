"""What became of a fault that was tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

SURVIVED, HARMLESS, LOST = "survived", "harmless", "lost"
"""Survived: refused or noticed and named, or gone on with the same bits. Harmless: what is read is what was written,
though a byte of the file differs. Lost: anything else."""


@dataclass(frozen=True)
class Outcome:
    """One fault and what became of it; `told` says how, and all of it where something was lost."""

    fault: str
    what: str
    told: str = ""


Fault = Callable[["Budget"], list[Outcome]]


@dataclass(frozen=True)
class Budget:
    """How much is tried.

    Args:
        seed: Of all random moments and places.
        kills: Processes that are killed.
        places: Places of each kind in a file that are flipped or cut.
        until: When to stop, on the monotonic clock.
    """

    seed: int
    kills: int
    places: int
    until: float

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return monotonic() > self.until

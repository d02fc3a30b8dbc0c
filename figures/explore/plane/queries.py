"""What is evaluated in the explorer, and the results: values small enough to send to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from landscape.sweep.precision import Precision

COHORT = ("cohort",)
"""Models of a place: all clients of its round, ids ascending."""

Values = dict[str, np.ndarray]
"""Metrics by name, the first axis is the point."""


@dataclass(frozen=True)
class PointQuery:
    """What points combine, and the samples that they are evaluated on.

    Args:
        round: Number of a round.
        models: Names of models (`drift.analyses.landscapes.named_models`), or COHORT.
        split: test, train, proxy, or "client 3".
        samples: At most so many of these; None: all.
        precision: "fast" or "exact", as in `landscape.evaluate`.
    """

    round: int
    models: tuple[str, ...]
    split: str = "test"
    samples: int | None = None
    precision: Precision = "exact"


@dataclass(frozen=True)
class Grid:
    """A plane through three models of a place, or a line through two.

    Args:
        kind: plane or line.
        points: Grid points per axis.
        margin: As in `drift.models_plane`.
        box: Part of a plane, or None.
    """

    query: PointQuery
    kind: str = "plane"
    points: int = 21
    margin: float = 0.3
    box: tuple[float, ...] | None = None

    def options(self) -> dict[str, Any]:
        """Those of `drift.models_plane` by which a figure has the same grid."""
        query = self.query
        options: dict[str, Any] = {"round": query.round, "models": list(query.models), "points": self.points}
        options |= {"split": query.split, "samples": query.samples, "precision": query.precision}
        return options if self.box is None else {**options, "box": list(self.box)}


@dataclass(frozen=True)
class GridValues:
    """Metrics at some points of a grid.

    Args:
        values: Metrics.
        seconds: Seconds of the processor for a point on all samples that the grid asks for.
        exact: Whether nothing was multiplied in bfloat16.
        samples: Number of samples that they are means over.
        complete: Whether these are all that the grid asks for.
    """

    values: Values
    seconds: float
    exact: bool
    samples: int
    complete: bool

    @property
    def how(self) -> str:
        """How they were computed, for a line of text."""
        precision = "exact" if self.exact else "in bfloat16"
        return precision if self.complete else f"{precision} on {self.samples} samples"


@dataclass(frozen=True)
class Numbers:
    """What is known of one point.

    Args:
        loss, error: Mean over the samples, nats and fraction; error NaN where the task has none.
        class_error: Error of each class, shape (C,); empty without classes.
        confusion: Samples of each class (rows) by predicted class, shape (C, C), counts; empty without classes.
        samples: Number of samples.
        statistics: Its statistics of batch normalisation: own or recomputed; empty for models without.
    """

    loss: float
    error: float
    class_error: np.ndarray
    confusion: np.ndarray
    samples: int
    statistics: str = ""

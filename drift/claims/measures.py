"""Numbers of a run that several claims use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.landscapes.averages import error_averaged
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run

LAST = 10
"""Rounds at the end that accuracies are averaged over, as in the papers' tables."""


def accuracy(run: Run) -> float:
    """Mean test accuracy of the last 10 evaluated rounds, in points; `last_accuracy` where fewer were evaluated."""
    values = run.metrics()["accuracy"].dropna("round").values
    return 100 * float(values[-LAST:].mean()) if len(values) >= LAST else last_accuracy(run)


def last_accuracy(run: Run) -> float:
    """Test accuracy after the last evaluated round, in points."""
    values = run.metrics()["accuracy"].dropna("round").values
    return 100 * float(values[-1]) if len(values) else float("nan")


def round_mean(analysis: Callable[..., xr.Dataset], name: str) -> Callable[[Run], float]:
    """The mean over rounds of a variable of an analysis, as a function of the run; missing values are left out."""
    return lambda run: float(run.cached(analysis)[name].mean("round", skipna=True))


def late(run: Run, what: str = "clients", count: int = 4) -> list[int]:
    """A few rounds of the second half that kept their clients or globals.

    Raises:
        LookupError: If none of them did.
    """
    stored = [index for index in run.kept(what) if index >= run.experiment.rounds // 2]
    if not stored:
        raise LookupError(f"run {run.name} kept no {what} in its second half; train with --set keep.{what}=all")
    return evenly_spaced(stored, count)


def mean_gain(variant: str) -> Callable[[Run], float]:
    """Mean loss that a variant of `what_if` gains in three rounds of the second half, nats, by run."""

    def measure(run: Run) -> float:
        gains = run.cached(what_if, rounds=late(run, "globals", 3), windows=[5])["gain"].sel(variant=variant)
        if (have := int(gains.notnull().sum())) < 3:
            raise LookupError(
                f"run {run.name} kept the models of {variant} in {have} of three rounds of its second half; a mean "
                "needs all three. Train with --set keep.globals=all keep.clients=all"
            )
        return float(gains.mean("round"))

    return measure


def biases(run: Run) -> xr.Dataset:
    """Decomposition by single models in a few rounds after the early phase."""
    return run.cached(decomposition, rounds=late(run, count=6), samples_per_client=100)


def more_models(run: Run) -> float:
    """Error of one client minus that of the mean of all, in a late round, in points."""
    error = run.cached(error_averaged, rounds=[late(run)[-1]])["error"].mean("draw", skipna=True).isel(round=0)
    return 100 * float(error[0] - error[-1])


def quarters(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Means over the first and over the last quarter of a series, missing values left out."""
    array = np.asarray(values, dtype=np.float64)
    part = max(1, len(array) // 4)
    first, last = array[:part], array[-part:]
    return _mean(first), _mean(last)


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")

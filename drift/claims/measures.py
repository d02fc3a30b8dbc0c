"""Numbers of a run that several claims use."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.landscapes.averages import error_averaged
from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.numbers import OF_RECORD
from drift.runs.run import Run

SUBSETS = 3
"""Random subsets per size of averaged clients, in each of several rounds."""

LAST = 10
"""Rounds at the end that accuracies are averaged over, as in the papers' tables."""


def accuracies(run: Run) -> xr.DataArray:
    """Test accuracy over rounds.

    Raises:
        LookupError: If it was not measured.
    """
    if "accuracy" not in (metrics := run.metrics()):
        raise LookupError(f"run {run.name} has no accuracy")
    return metrics["accuracy"]


def accuracy(run: Run) -> float:
    """Mean test accuracy of the last 10 evaluated rounds, in points; of the last one where fewer were evaluated."""
    values = accuracies(run).dropna("round").values
    last = values[-LAST:] if len(values) >= LAST else values[-1:]
    return 100 * float(last.mean()) if len(last) else float("nan")


def ahead(run: Run, other: Run) -> float:
    """`accuracy` minus that of another run, points."""
    return accuracy(run) - accuracy(other)


def two_clients(run: Run) -> bool:
    """Whether two clients or more take part in a round."""
    return run.experiment.clients.per_round >= 2


def three_clients(run: Run) -> bool:
    """Whether three clients or more take part in a round."""
    return run.experiment.clients.per_round >= 3


def round_mean(run: Run, *, name: str) -> float:
    """The mean over rounds of a number of the record, one of `OF_RECORD`; missing values are left out."""
    return float(run.cached(OF_RECORD[name])[name].mean("round", skipna=True))


def late(run: Run, what: str = "clients", count: int = 4) -> list[int]:
    """A few rounds of the second half that kept their clients or globals.

    Raises:
        LookupError: If none of them did.
    """
    stored = [index for index in run.kept(what) if index >= run.experiment.rounds // 2]
    if not stored:
        raise LookupError(f"run {run.name} kept no {what} in its second half; train with --set keep.{what}=all")
    return evenly_spaced(stored, count)


def mean_gain(run: Run, *, variant: str, least: int = 3) -> float:
    """Mean loss that a variant of `what_if` gains in three rounds of the second half, nats.

    Args:
        run: A run.
        variant: As `what_if` names it.
        least: Rounds of the three that have to have its models.

    Raises:
        LookupError: If fewer of them have.
    """
    gains = run.cached(what_if, rounds=late(run, "globals", 3), windows=[5])["gain"].sel(variant=variant)
    if (have := int(gains.notnull().sum())) < least:
        raise LookupError(
            f"run {run.name} kept the models of {variant} in {have} of three rounds of its second half; this mean "
            f"needs {least}. Train with --set keep.globals=all keep.clients=all"
        )
    return float(gains.mean("round", skipna=True))


def biases(run: Run) -> xr.Dataset:
    """Decomposition in a few rounds after the early phase, by three models of each client from the same start."""
    return run.cached(decomposition, rounds=late(run, count=6), samples_per_client=100, estimator="local")


def more_models(run: Run) -> float:
    """Error of one client minus that of the mean of all, in points: mean over late rounds."""

    def more(**options: Any) -> float:
        error = run.cached(error_averaged, **options)["error"].mean("draw", skipna=True).isel(round=0)
        return 100 * float(error[0] - error[-1])

    rounds = late(run)
    numbers = [partial(more, rounds=[index], subsets=SUBSETS) for index in rounds]
    return mean_of(numbers, partial(more, rounds=rounds[-1:]))


def mean_of(numbers: Iterable[Callable[[], float]], instead: Callable[[], float]) -> float:
    """Mean of the numbers that a run gives; `instead` for a file of a run that holds none of them.

    Numbers that the run cannot give, as its file lacks the result or a client of it has no model, are left out.

    Raises:
        LookupError: If it gives none, nor the one in their place.
    """
    values = []
    for number in numbers:
        with suppress(LookupError, ValueError):
            values.append(number())
    return float(np.mean(values)) if values else instead()


def quarters(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Means over the first and over the last quarter of a series, missing values left out."""
    array = np.asarray(values, dtype=np.float64)
    size = max(1, len(array) // 4)
    first, last = array[:size], array[-size:]
    return _mean(first), _mean(last)


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")

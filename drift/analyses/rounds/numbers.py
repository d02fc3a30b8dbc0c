"""Any number of a run over rounds by its name, recorded or from an analysis of the record, and how it is shown."""

from collections.abc import Callable
from dataclasses import dataclass

import xarray as xr

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import aggregation_weights, locality, regularisation_ratio, update_norms
from drift.analyses.rounds.variance import drift_variances
from drift.runs.growing_run import GrowingRun
from drift.runs.metrics import number_attributes
from landscape.plugins import unknown

Analysis = Callable[..., xr.Dataset]


@dataclass(frozen=True)
class Quantity:
    """How a number of every round is called and shown.

    Args:
        words: What it is called.
        log: Whether its axis is logarithmic.
        zero: Whether zero is marked.
    """

    words: str
    log: bool = False
    zero: bool = False


_RECORDED = {
    "accuracy": "test accuracy",
    "error": "test error",
    "loss": "test loss",
    "local_loss": "clients' training loss",
}

_OF_ANALYSES: dict[Analysis, dict[str, Quantity]] = {
    drift_variances: {
        "client_variance": Quantity("client-drift variance", log=True),
        "change_variance": Quantity("update change", log=True),
        "change_share": Quantity("update change in the sum of both variances"),
        "gain": Quantity("Kalman gain"),
    },
    coherence: {
        "coherence": Quantity("local gradient coherence", zero=True),
        "mean_cosine": Quantity("mean cosine between client updates", zero=True),
    },
    locality: {
        "locality": Quantity("locality: largest distance of a client to the mean"),
        "mean_distance": Quantity("mean distance of the clients to their mean"),
    },
    update_norms: {
        "update_norm_mean": Quantity("mean norm of the client updates"),
        "mean_update_norm": Quantity("norm of the mean client update"),
        "step_norm": Quantity("norm of the global step"),
        "end_norm": Quantity("norm of the global model"),
    },
    aggregation_weights: {"gamma": Quantity("shrinking factor gamma")},
    regularisation_ratio: {"ratio": Quantity("ratio of optimisation to regularisation", log=True)},
}

OF_RECORD = {name: analysis for analysis, numbers in _OF_ANALYSES.items() for name in numbers}
"""Analyses of the record by the name of a number per round that they compute."""


def quantity(name: str) -> Quantity:
    """How a number is shown, one of OF_RECORD or a recorded one: recorded losses are logarithmic."""
    if name in OF_RECORD:
        return _OF_ANALYSES[OF_RECORD[name]][name]
    return Quantity(_RECORDED.get(name, number_attributes(name)["long_name"]), log="loss" in name)


def number(run: GrowingRun, name: str) -> xr.DataArray:
    """A number of every round of a run, over `round`.

    Args:
        run: The run, its rounds read (`GrowingRun.update`).
        name: Name of a recorded number, or one of OF_RECORD.

    Raises:
        LookupError: If the run has no such number; names those that there are.
    """
    if name in OF_RECORD:
        return (OF_RECORD[name](run) if isinstance(run, GrowingRun) else run.cached(OF_RECORD[name]))[name]
    numbers = run.numbers()
    if name not in numbers:
        raise LookupError(f"{run.name}: {unknown('number', name, [*map(str, numbers), *OF_RECORD])}")
    return numbers[name].assign_attrs(long_name=quantity(name).words)

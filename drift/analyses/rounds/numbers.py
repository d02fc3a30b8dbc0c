"""Any number of a run over rounds by its name: recorded ones, and those of analyses of the record."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.norms_and_weights import balance, learned, locality, update_norms
from drift.analyses.rounds.variance import drift_variances
from drift.runs.growing_run import GrowingRun
from landscape.plugins import unknown

OF_RECORD: dict[str, Callable[..., xr.Dataset]] = {
    "client_variance": drift_variances,
    "change_variance": drift_variances,
    "change_share": drift_variances,
    "gain": drift_variances,
    "coherence": coherence,
    "mean_cosine": coherence,
    "locality": locality,
    "mean_distance": locality,
    "update_norm_mean": update_norms,
    "mean_update_norm": update_norms,
    "step_norm": update_norms,
    "end_norm": update_norms,
    "gamma": learned,
    "ratio": balance,
}
"""Analyses of the record by the name of a number per round that they compute."""


def number(run: GrowingRun, name: str) -> xr.DataArray:
    """A number of every round of a run, over `round`.

    Args:
        run: The run, its rounds read (`GrowingRun.update`).
        name: Name of a recorded number, or one of OF_RECORD.

    Raises:
        LookupError: If the run has no such number; names those that there are.
    """
    if name in OF_RECORD:
        return OF_RECORD[name](run)[name]
    numbers = run.numbers()
    if name not in numbers:
        raise LookupError(f"{run.name}: {unknown('number', name, [*map(str, numbers), *OF_RECORD])}")
    return numbers[name]

"""The recorded metrics of a run, as one dataset over its rounds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drift.runs.registry import analysis
from drift.runs.run import Run

_USUAL = ("accuracy", "error", "local_loss", "loss")
"""Metrics that every trained run has; a run of another program may lack them."""

_UNITS = {"seconds": "s", "accuracy": "fraction", "own_accuracy": "fraction", "error": "fraction"}


@analysis("round", cost="record")
def recorded_metrics(run: Run) -> xr.Dataset:
    """Every recorded number of every round, by name, over `round`; NaN where a round has none.

    A usual number (accuracy, error, loss, local_loss) that no round has names the recorded ones in its attribute
    `recorded`.

    Args:
        run: Run to analyse.
    """
    indices = run.rounds()
    records = [record.metrics for record in run.without_models(indices)]
    names = sorted({*_USUAL, *(name for record in records for name in record)})
    columns = {name: [record.get(name, np.nan) for record in records] for name in names}
    values = {name: ("round", columns[name], number_attributes(name, run.loss_units)) for name in names}
    result = xr.Dataset(
        values, coords={"round": indices}, attrs={"analysis": "metrics", "source": "recorded rounds", "run": run.name}
    )
    recorded = sorted({name for record in records for name in record})
    for name in set(_USUAL) - set(recorded):
        result[name].attrs["recorded"] = ", ".join(recorded) or "none"
    return result


def number_attributes(name: str, loss_units: str = "1") -> dict[str, str]:
    """long_name and units of a recorded number."""
    return {"long_name": name.replace("_", " "), "units": loss_units if "loss" in name else _UNITS.get(name, "1")}

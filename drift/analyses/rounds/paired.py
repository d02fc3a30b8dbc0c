"""Differences between runs that trained the same clients in the same rounds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from drift.analyses.per_round import result


def paired_difference(
    values: xr.DataArray, reference: xr.DataArray, cohorts: Mapping[int, str], others: Mapping[int, str]
) -> xr.DataArray:
    """A number of a run minus that of a reference run, round by round; NaN where their cohorts are not the same.

    Two runs on the same cohorts differ by their settings only, so that the difference varies much less than each of
    the numbers.

    Args:
        values, reference: The numbers of both runs, over `round`.
        cohorts, others: Digests of their cohorts by round, as `drift.runs.growing_run.GrowingRun.cohorts` returns them.

    Returns:
        The difference over the rounds that both runs have; attributes `same` and `different` count the rounds whose
        cohorts are the same and are not.
    """
    both = np.intersect1d(values["round"].values, reference["round"].values)
    same = np.array([cohorts.get(index) is not None and cohorts[index] == others.get(index) for index in both.tolist()])
    difference = values.sel(round=both).values - reference.sel(round=both).values
    name = str(values.attrs.get("long_name", values.name))
    about = {"difference": (f"difference of {name}", str(values.attrs.get("units", "1")))}
    variables = {"difference": ("round", np.where(same, difference, np.nan) if len(both) else difference)}
    counts = {"same": int(same.sum()), "different": int((~same).sum()) if len(both) else 0}
    dataset = result(variables, about, {"round": both}, analysis="paired_difference", source="this project")
    return dataset["difference"].assign_attrs(counts)

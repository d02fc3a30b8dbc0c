"""Differences between runs that trained the same clients in the same rounds."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from drift.analyses.per_round import result
from drift.plugins.reserved_names import UNKNOWN
from drift.runs.run import Run

AnyRun = TypeVar("AnyRun", bound=Run)


def counterpart(run: Run, references: Iterable[AnyRun]) -> AnyRun:
    """The run of the references with the seed of a run, measured on the same data: the other side of a difference.

    Raises:
        LookupError: If no reference has the seed.
        ValueError: If the references with the seed were trained or measured on other data, or nobody stated the data.
    """
    if run.data_name == UNKNOWN and run.context.user_task is None:
        raise ValueError(
            f"the data of run {run.name} are not known, so a difference may be due to the data; give "
            "data=NAME when recording, or open the runs with their task."
        )
    same_seed = [other for other in references if other.seed == run.seed]
    if not same_seed:
        raise LookupError(f"the reference has no run of its seed, {run.seed}")
    identity = data_identity(run)
    for other in same_seed:
        if data_identity(other) == identity:
            return other
    theirs = data_identity(other := same_seed[0])
    names = ", ".join(name.replace("_", " ") for name in identity if identity[name] != theirs[name])
    raise ValueError(
        f"run {run.name} ({run.data_name}) was trained on other data than the reference {other.name} "
        f"({other.data_name}): they differ in {names}. Give runs on the same data."
    )


def data_identity(run: Run) -> dict[str, Any]:
    """What decides which samples a run's numbers are of; equal for two runs on the same data.

    The fingerprint is that of the whole dataset, whose classes and test samples the settings select. A run that was
    recorded without its data has the name that was said, if any.
    """
    task = run.experiment.task
    selected = {
        "data": run.data_name,
        "classes": task.classes,
        "test_samples": task.test_samples,
        "proxy": run.experiment.proxy,
    }
    user = run.context.user_task
    return {"fingerprint": run.about.get("fingerprint") if user is None else user.fingerprint, **selected}


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

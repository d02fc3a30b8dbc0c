"""Numbers of several methods as differences to one of them: the same seed, initial model and cohorts."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import xarray as xr

from drift.analyses.rounds.paired import counterpart, paired_difference
from drift.runs.growing_run import recorded
from drift.runs.run import Run
from figures.looks.look import label
from figures.looks.look_values import Range

ALONG = ("algorithm", "row")
"""Dimensions of methods."""


def paired(ds: xr.Dataset, name: str, reference: str, runs: Sequence[Run]) -> xr.Dataset:
    """The data with the numbers of each method minus those of the reference, seed by seed, without its own.

    Over rounds, only those count in which both trained the same cohorts.

    Args:
        ds: Numbers over algorithm (or row, in tables) and seed.
        name: Of the figure.
        reference: Label of the method.
        runs: Those of the data.

    Raises:
        LookupError: If the reference was not run, or shares no seed with another method.
        ValueError: If the data have no numbers of methods over seeds, or others too, which have no difference; or if
            a run was trained on other data than that of the reference.
    """
    dim = next((name for name in ALONG if name in ds.dims), None)
    if dim is None or "seed" not in ds.dims or ds.attrs.get("rows", "method") not in ("method", "pool"):
        raise ValueError(f"figure {name} cannot apply paired_to: it has no numbers of several methods over seeds.")
    names = [str(method) for method in ds[dim].values]
    if reference not in names:
        raise LookupError(f"no run is of method {reference}, the reference of paired_to; there are {', '.join(names)}.")
    others = [method for method in names if method != reference]
    references = [run for run in runs if run.label == reference]
    for run in runs:
        with suppress(LookupError):  # the reference has no run of this seed
            counterpart(run, references)
    base = ds.sel({dim: reference}, drop=True)
    rest = ds.sel({dim: others})
    changed = {}
    for variable, values in rest.data_vars.items():
        if {dim, "seed"} <= set(values.dims) and values.dtype.kind == "f":
            changed[variable] = (values - base[variable]).assign_attrs(values.attrs).transpose(*values.dims)
    if not any(bool(values.notnull().any()) for values in changed.values()):
        raise LookupError(f"no run has a seed of {reference}, so there is no difference; give runs with its seeds.")
    changed_ds = rest.assign(changed).drop_vars({"printed"} & set(rest))
    text = f"numbers are differences to those of {label(reference)} with the same seed, initial model and cohorts"
    return _same_cohorts(changed_ds, reference, dim, runs).assign_attrs(paired_to=reference, caption=text)


def _same_cohorts(ds: xr.Dataset, reference: str, dim: str, runs: Sequence[Run]) -> xr.Dataset:
    """Without the rounds in which a run and its counterpart trained other cohorts."""
    rounds = [name for name in ds.dims if str(name).endswith("round")]
    if not rounds:
        return ds
    cohorts_of = {(run.label, run.seed): recorded(run).cohorts() for run in runs}
    masks: dict[str, xr.DataArray] = {}
    for over in map(str, rounds):
        mask = np.ones((ds.sizes[dim], ds.sizes["seed"], ds.sizes[over]), bool)
        for row, name in enumerate(map(str, ds[dim].values)):
            for column, seed in enumerate(ds.seed.values.tolist()):
                first, second = cohorts_of.get((name, seed), {}), cohorts_of.get((reference, seed), {})
                ones = xr.DataArray(np.ones(ds.sizes[over]), {"round": ds[over].values}, ["round"])
                mask[row, column] = np.isfinite(paired_difference(ones, ones, first, second).values)
        masks[over] = xr.DataArray(mask, dims=(dim, "seed", over))
    return ds.assign(
        {
            name: values.where(masks[over]).transpose(*values.dims).assign_attrs(values.attrs)
            for name, values in ds.data_vars.items()
            for over in map(str, rounds)
            if over in values.dims and {dim, "seed"} <= set(values.dims)
        }
    )


def cut(ds: xr.Dataset, name: str, rounds: Range) -> xr.Dataset:
    """The data between two rounds, along every axis of rounds.

    Raises:
        ValueError: If there is no such axis, or no round between them.
    """
    axes = [axis for axis in ds.dims if str(axis).endswith("round")]
    if not axes:
        raise ValueError(
            f"figure {name} cannot apply rounds: it has no axis of rounds. The rounds of its panels are an option of "
            "its own, as in --set rounds=[0,10] or --set round=10."
        )
    span = ds.sel({axis: slice(*rounds) for axis in axes})
    if not all(span.sizes[axis] for axis in axes):
        ends = [int(ds[axis].values[index]) for axis in axes[:1] for index in (0, -1)]
        low, high = (f"{end:g}" for end in rounds)
        raise ValueError(f"no round is between {low} and {high}; the figure shows {ends[0]} to {ends[1]}.")
    return span

"""Sampling error of a surface: how surely two of its heights differ, from evaluations on parts of the samples."""

from collections.abc import Mapping

import numpy as np
import torch
import xarray as xr
from torch import Tensor

SUFFIX = "_sampling_error"
"""Ends the name of the variable with the sampling error of another one."""

FEWEST = 2
"""Folds that a standard error needs at least."""


def sample_folds(samples: int, folds: int) -> Tensor:
    """Fold 0, 1, .. of each sample, drawn at random, the same in every call; sizes differ by one at most.

    Raises:
        ValueError: If there are fewer than two folds, or fewer samples than folds.
    """
    if not FEWEST <= folds <= samples:
        raise ValueError(f"folds is {folds}; give {FEWEST} or more, at most the number of samples, {samples}.")
    return torch.from_numpy(np.random.default_rng(0).permutation(samples) % folds)


def over_folds(ds: xr.Dataset, weights: Mapping[str, np.ndarray]) -> xr.Dataset:
    """The means over all samples, and the standard error of each point's difference from the lowest point.

    The difference is paired: both points are evaluated on the same samples, so what makes a sample hard at both of them
    drops out. With folds f of weight n_f (their samples), n in all, and the difference d_f in fold f, its squared error
    is sum_f n_f (d_f - d)^2 / (n (F - 1)); with one sample per fold that of a paired comparison.

    Args:
        ds: As `landscape.surface` returns it with the folds as groups.
        weights: Of each fold in the mean of a metric, shape (F,), by metric.

    Returns:
        The dataset without the dimension `group`: for a metric such as loss also loss_sampling_error over the grid, in
        the metric's unit, and mark_loss_sampling_error at the marks; 0 at the lowest point of the grid.

    Raises:
        ValueError: If a metric has several values per sample, whose numbers of samples the folds do not tell.
    """
    shares = {name: xr.DataArray(weight / weight.sum(), dims="group") for name, weight in weights.items()}
    grouped = {str(name) for name, values in ds.data_vars.items() if "group" in values.dims}
    if several := [name for name in sorted(grouped) if "class" in ds[name].dims]:
        raise ValueError(f"{several[0]} has several values per sample; a sampling error needs metrics that have one.")
    lowest = {name: _at_lowest(ds[name], shares[name]) for name in grouped if not name.startswith("mark_")}
    variables: dict[str, xr.DataArray] = {}
    for name, values in ds.data_vars.items():
        key = str(name)
        if key in grouped:
            metric = key.removeprefix("mark_")
            variables |= _mean_and_error(values, key, lowest[metric], shares[metric])
        else:
            variables[key] = values
    return xr.Dataset(variables, attrs=ds.attrs).assign_attrs(folds=len(next(iter(weights.values()))))


def _at_lowest(values: xr.DataArray, shares: xr.DataArray) -> xr.DataArray:
    """Values (group,) at the point with the lowest mean."""
    values = values.where(shares > 0, 0)
    points = values.stack(point=[dim for dim in values.dims if dim != "group"]).reset_index("point", drop=True)
    mean = (points * shares).sum("group", skipna=False)
    return points.isel(point=int(mean.fillna(np.inf).argmin("point")))


def _mean_and_error(
    values: xr.DataArray, name: str, lowest: xr.DataArray, shares: xr.DataArray
) -> dict[str, xr.DataArray]:
    """The mean over the folds, and the standard error of its difference from the lowest point."""
    values = values.where(shares > 0, 0)  # a fold without weight has no mean
    middle = (values * shares).sum("group", skipna=False)
    difference = values - lowest
    mean = (difference * shares).sum("group", skipna=False)
    squares = ((difference - mean) ** 2 * shares).sum("group", skipna=False)
    error = (squares / (int((shares > 0).sum()) - 1)) ** 0.5
    about = values.attrs["long_name"]
    return {
        name: middle.assign_attrs(values.attrs),
        f"{name}{SUFFIX}": error.assign_attrs(
            long_name=f"standard error of the difference in {about} from the lowest point", units=values.attrs["units"]
        ),
    }

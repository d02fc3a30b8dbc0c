"""A plane that is evaluated at a growing part of its points, and what a result states of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from landscape.model.task import Task
from landscape.surfaces.surface import surface
from landscape.sweep.grid import Sweep


class PartialGrid:
    """State of a computation: the dataset so far, and a mask of the points that this computation requested.

    Args:
        task, sweep: As `surface` takes them.
        first: Mask over the grid of the points that are evaluated first.
        known: An earlier, perhaps partial result of the same call; what was interpolated there is not used.
        options: Further arguments of `surface`.
    """

    def __init__(self, task: Task, sweep: Sweep, first: np.ndarray, known: xr.Dataset | None, **options: Any) -> None:
        self._task, self._sweep, self._options = task, sweep, options
        self.dims = list(sweep.coords)
        self.ds = self._evaluated(first, None if known is None else _without_interpolated(known, self.dims))
        self.requested = first

    def evaluate(self, mask: np.ndarray) -> None:
        """Evaluate the points of a mask that includes all earlier ones."""
        self.ds = self._evaluated(mask, self.ds)
        self.requested = mask

    def _evaluated(self, mask: np.ndarray, known: xr.Dataset | None) -> xr.Dataset:
        return surface(self._task, replace(self._sweep, inside=mask), known=known, **self._options)

    def values(self, name: str) -> np.ndarray:
        """A variable as an array (all other dimensions, *grid)."""
        if name not in self.metrics:
            raise ValueError(f"no metric named {name!r} to refine by; evaluated: {', '.join(self.metrics)}.")
        return self.ds[name].transpose(..., *self.dims).values.reshape(-1, *self.requested.shape)

    @property
    def metrics(self) -> list[str]:
        """Names of the variables over the grid."""
        return _variables_over(self.ds, self.dims)

    def filled(self, ds: xr.Dataset, name: str, guess: np.ndarray) -> xr.Dataset:
        """The dataset with guesses (all other dimensions, *grid) of a variable where it was not requested."""
        array = ds[name].transpose(..., *self.dims)
        values = np.where(self.requested, self.values(name), guess).reshape(array.shape)
        return ds.assign({name: array.copy(data=values).transpose(*ds[name].dims)})

    def marked(self, ds: xr.Dataset) -> xr.Dataset:
        """The dataset with the variable `interpolated`."""
        about = {"long_name": "value is interpolated, not evaluated", "units": "1"}
        return ds.assign(interpolated=(self.dims, ~self.requested, about))


def require_plane(sweep: Sweep, tolerance: float, share_of: str) -> None:
    """Raise ValueError if points of the sweep cannot be interpolated, or not to this share of the range or value."""
    if len(sweep.shape) != 2 or sweep.inside is not None:
        raise ValueError(f"the sweep has dimensions {', '.join(sweep.coords)}; interpolation is for full grids of two.")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; it is a share of the {share_of} above 0, such as 0.01.")


def with_errors(ds: xr.Dataset, name: str, away: np.ndarray, where: str) -> xr.Dataset:
    """The dataset with root mean square and largest magnitude of the differences `away` of interpolated values."""
    units = ds[name].attrs["units"]
    for kind, words, value in (
        ("error", "root mean square error", np.sqrt(np.square(away).mean()) if away.size else np.nan),
        ("worst", "largest error", np.abs(away).max() if away.size else np.nan),
    ):
        about = {"long_name": f"{words} of interpolated {name}, {where}", "units": units}
        ds[f"{name}_interpolation_{kind}"] = ((), value, about)
    return ds


def _variables_over(ds: xr.Dataset, dims: Sequence[str]) -> list[str]:
    """Names of the variables over all of these dimensions."""
    return [str(name) for name, array in ds.items() if {*dims} <= {*array.dims} and name != "interpolated"]


def _without_interpolated(known: xr.Dataset, dims: Sequence[str]) -> xr.Dataset:
    """An earlier result with NaN where it was interpolated."""
    if "interpolated" not in known:
        return known
    mask = known["interpolated"]
    plain = known.drop_vars("interpolated")
    return plain.assign({name: plain[name].where(~mask) for name in _variables_over(plain, dims)})

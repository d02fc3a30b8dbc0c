"""Planes from some of their points: a smooth interpolant, and its error at points that were predicted from others."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from scipy.interpolate import RBFInterpolator

from landscape.surfaces.point_table import grid_dims, metrics_of
from landscape.surfaces.refinement import RefinementTrial

KERNEL = "quintic"
"""Radial basis function, -r^5; `python -m benchmarks.interpolation` compares it with others."""


def interpolate(
    values: np.ndarray, requested: np.ndarray, kernel: str = KERNEL, *, logarithmic: bool | None = None
) -> np.ndarray:
    """Values (k, *grid) from those at the requested points.

    Args:
        values: NaN in all requested points of a group without samples; others are not read.
        requested: Mask over the grid.
        kernel: Radial basis function, as `scipy.interpolate.RBFInterpolator` names them.
        logarithmic: Whether logarithms are interpolated; by default where all requested values are positive.

    Raises:
        ValueError: If a value is infinite or NaN.
    """
    if requested.all():
        return values
    some = values[:, requested]
    present = ~np.isnan(some).all(axis=1)
    if not np.isfinite(some[present]).all() or not present.any():
        raise ValueError("a value on the plane is infinite or NaN, so it cannot be interpolated; evaluate every point.")
    logarithmic = in_log(some) if logarithmic is None else logarithmic
    known = np.log(some[present]) if logarithmic else some[present]
    points = np.stack(np.meshgrid(*(np.linspace(-1, 1, count) for count in requested.shape), indexing="ij"), -1)
    middle = known.mean(axis=1, keepdims=True)
    smooth = RBFInterpolator(points[requested], (known - middle).T, kernel=kernel)(points.reshape(-1, 2)).T + middle
    full = np.full(values.shape, np.nan)
    full[present] = (np.exp(smooth) if logarithmic else smooth).reshape(-1, *requested.shape)
    return full


def possible(values: np.ndarray, known: np.ndarray, unit: str) -> np.ndarray:
    """The nearest values that a metric can have: at most 1 of a fraction, and none below 0 if no known value is."""
    return values.clip(-np.inf if np.nanmin(known) < 0 else 0.0, 1.0 if unit == "fraction" else np.inf)


def in_log(values: np.ndarray) -> bool:
    """Whether a metric is interpolated by its logarithm: where all of its values are positive, NaN apart."""
    return bool((values[~np.isnan(values)] > 0).all())


def trial_errors(
    values: np.ndarray, predict: Callable[[np.ndarray], np.ndarray], trials: Sequence[RefinementTrial]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Differences (k, n) at the points of each trial, and the largest (k,) as a share of the range of the surface.

    Shares are those of logarithms where `in_log` says so of the surface and of all predictions.

    Args:
        values: The surface, shape (k, *grid).
        predict: The surface from the points of a mask.
        trials: Points of which the surface has exact values.
    """
    guesses = [predict(trial.before)[:, trial.fresh] for trial in trials]
    scale = np.log if all(in_log(array.reshape(len(values), -1)) for array in (values, *guesses)) else np.asarray
    ranges = np.ptp(scale(values).reshape(len(values), -1), axis=1)
    away, shares = list[np.ndarray](), list[np.ndarray]()
    for trial, guess in zip(trials, guesses, strict=True):
        exact = values[:, trial.fresh]
        away.append(guess - exact)
        largest = np.abs(scale(guess) - scale(exact)).max(axis=1, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append(np.where(largest > 0, largest / ranges, 0.0 * largest))
    return away, shares


def values_of(ds: xr.Dataset, name: str) -> np.ndarray:
    """A metric of a labelled plane as an array (all other dimensions, *grid)."""
    dims = grid_dims(ds, name)
    return ds[name].transpose(..., *dims).values.reshape(-1, *(ds.sizes[dim] for dim in dims))


def filled(ds: xr.Dataset, requested: np.ndarray, trials: Sequence[RefinementTrial] = ()) -> xr.Dataset:
    """A labelled plane that is interpolated where it was not requested, and the errors of the last trials.

    Args:
        ds: Values at the requested points; others are not read.
        requested: Mask over the grid.
        trials: Requested points that are predicted from those before.

    Returns:
        The plane with `interpolated`, `<metric>_interpolation_error`, `_worst` and `_share`, and the attributes
        `evaluated`, `random_points` and `<metric>_interpolated_in` (`landscape.interpolated_surface`).

    Raises:
        ValueError: If a value is infinite or NaN.
    """
    tested = [] if requested.all() else trials
    for name in metrics_of(ds):
        exact, array = values_of(ds, name), ds[name].transpose(..., *grid_dims(ds, name))
        unit = array.attrs["units"]

        def predict(mask: np.ndarray, exact: np.ndarray = exact, unit: str = unit) -> np.ndarray:
            return possible(interpolate(exact, mask), exact[:, requested], unit)

        complete = np.where(requested, exact, predict(requested))
        ds = ds.assign({name: array.copy(data=complete.reshape(array.shape)).transpose(*ds[name].dims)})
        ds = with_errors(ds, name, *trial_errors(complete, predict, tested))
        ds = ds.assign_attrs({f"{name}_interpolated_in": "log" if in_log(exact[:, requested]) else "linear"})
    return with_interpolated(ds, requested, tested)


def with_errors(ds: xr.Dataset, name: str, away: Sequence[np.ndarray], shares: Sequence[np.ndarray]) -> xr.Dataset:
    """The dataset with what is stated of interpolated values, over the dimensions of a metric beside the grid.

    Args:
        away: Differences (k, n) of each trial; the root mean square is that of the last one.
        shares: Largest differences (k,) of each trial, as a share of the range.
    """
    grid, units = grid_dims(ds, name), ds[name].attrs["units"]
    further = [dim for dim in ds[name].dims if dim not in grid]
    shape = [ds.sizes[dim] for dim in further]
    missing = np.full(shape, np.nan).ravel()
    tested = away if away and away[-1].size else []
    for kind, words, value, unit in (
        ("error", "root mean square error", np.sqrt(np.square(tested[-1]).mean(1)) if tested else missing, units),
        ("worst", "largest error", np.max([np.abs(error).max(1, initial=0) for error in away] or [missing], 0), units),
        ("share", "largest error, as a share of its range,", np.max([*shares] or [missing], 0), "1"),
    ):
        about = {"long_name": f"{words} of interpolated {name}, at tested points before they were used", "units": unit}
        ds[f"{name}_interpolation_{kind}"] = (further, value.reshape(shape), about)
    return ds


def with_interpolated(ds: xr.Dataset, requested: np.ndarray, trials: Sequence[RefinementTrial]) -> xr.Dataset:
    """The dataset with the variable `interpolated`, and the numbers of points that it rests on."""
    about = {"long_name": "value is interpolated, not evaluated", "units": "1"}
    random = int(trials[1].fresh.sum()) if len(trials) > 1 else 0
    ds = ds.assign(interpolated=(grid_dims(ds, metrics_of(ds)[0]), ~requested, about))
    return ds.assign_attrs(evaluated=int(requested.sum()), random_points=random)

"""Planes from some of their points: nested lattices, a smooth interpolant, and its error at points not yet used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import RBFInterpolator

from landscape.surfaces.point_table import grid_dims, metrics_of

KERNEL = "quintic"
"""Radial basis function, -r^5; `python -m benchmarks.interpolation` compares it with others."""

CELLS = 4
"""Cells per axis of the first lattice, which has 5 x 5 points."""

Planes = dict[str, np.ndarray]
"""Every metric on the whole grid, shape (all other dimensions, *grid), by name."""


@dataclass(frozen=True)
class Trial:
    """What was predicted of points before they were evaluated.

    Args:
        guess: The surface as it was then: `Planes`, or what `lattice_trials` was given.
        fresh: Mask over the grid of the points.
    """

    guess: Any
    fresh: np.ndarray


def lattices(shape: tuple[int, int]) -> Iterator[np.ndarray]:
    """Masks over a grid of this shape, each a part of the next; the last one has all points.

    Every other one has 2^k 4 + 1 points per axis, as evenly spaced as the grid allows; the ones between add the middles
    of the cells.
    """
    cells, before = CELLS, 0
    while True:
        for spacing, middles in ((2, False), (2, True)):
            rows, columns = (np.arange(2 * cells + 1) * (count - 1) * 2 // (2 * cells) for count in shape)
            mask = np.zeros(shape, dtype=bool)
            mask[np.ix_((rows[::spacing] + 1) // 2, (columns[::spacing] + 1) // 2)] = True
            if middles:
                mask[np.ix_((rows[1::2] + 1) // 2, (columns[1::2] + 1) // 2)] = True
            if mask.sum() > before:
                yield mask
            before = int(mask.sum())
        if before == mask.size:
            return
        cells *= 2


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
        raise ValueError(
            "a value on the plane is infinite or NaN, so nothing smooth leads through it; evaluate every point."
        )
    logarithmic = in_log(some) if logarithmic is None else logarithmic
    known = np.log(some[present]) if logarithmic else some[present]
    places = np.stack(np.meshgrid(*(np.linspace(-1, 1, count) for count in requested.shape), indexing="ij"), -1)
    middle = known.mean(axis=1, keepdims=True)
    smooth = RBFInterpolator(places[requested], (known - middle).T, kernel=kernel)(places.reshape(-1, 2)).T + middle
    full = np.full(values.shape, np.nan)
    full[present] = (np.exp(smooth) if logarithmic else smooth).reshape(-1, *requested.shape)
    return full


def in_log(values: np.ndarray) -> bool:
    """Whether a metric is interpolated by its logarithm: where all of its values are positive, NaN apart."""
    return bool((values[~np.isnan(values)] > 0).all())


def shares_of_range(
    guess: np.ndarray, exact: np.ndarray, filled: np.ndarray, fresh: np.ndarray, logarithmic: bool
) -> np.ndarray:
    """Largest difference at the fresh points over the range of the surface, of logarithms where asked for, shape (k,).

    Args:
        guess: Values (k, *grid) that were predicted.
        exact: Those that were evaluated then, read at the fresh points only.
        filled: The surface, shape (k, *grid).
        fresh: Mask over the grid.
        logarithmic: As `in_log` says.
    """
    scale = np.log if logarithmic else np.asarray
    largest = np.abs(scale(guess[:, fresh]) - scale(exact[:, fresh])).max(axis=1, initial=0.0)
    ranges = np.ptp(scale(filled).reshape(len(filled), -1), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(largest > 0, largest / ranges, 0.0 * largest)


def values_of(ds: xr.Dataset, name: str) -> np.ndarray:
    """A metric of a labelled plane as an array (all other dimensions, *grid)."""
    dims = grid_dims(ds, name)
    return ds[name].transpose(..., *dims).values.reshape(-1, *(ds.sizes[dim] for dim in dims))


def predicted(ds: xr.Dataset, requested: np.ndarray) -> Planes:
    """Every metric of a labelled plane on the whole grid, from its values at the requested points.

    Raises:
        ValueError: If a value is infinite or NaN.
    """
    planes = {name: interpolate(values_of(ds, name), requested) for name in metrics_of(ds)}
    fractions = [name for name in planes if ds[name].attrs["units"] == "fraction"]
    return planes | {name: np.clip(planes[name], 0, 1) for name in fractions}


def filled(ds: xr.Dataset, requested: np.ndarray, planes: Planes, trials: Sequence[Trial]) -> xr.Dataset:
    """A labelled plane with predictions where it was not requested, and the errors of the last trials.

    Args:
        ds: Values at the requested points; others are not read.
        requested: Mask over the grid.
        planes: As `predicted` returns them for these points.
        trials: What was predicted of some requested points before.

    Returns:
        The plane with `interpolated`, `<metric>_interpolation_error`, `_worst` and `_share`, and the attributes
        `evaluated`, `random_points` and `<metric>_interpolated_in` (`landscape.interpolated_surface`).
    """
    tested = [] if requested.all() else trials
    for name in metrics_of(ds):
        exact, dims = values_of(ds, name), ds[name].dims
        logarithmic = in_log(exact[:, requested])
        array = ds[name].transpose(..., *grid_dims(ds, name))
        whole = array.copy(data=np.where(requested, exact, planes[name]).reshape(array.shape))
        ds = ds.assign({name: whole.transpose(*dims)})
        away = [(trial.guess[name] - exact)[:, trial.fresh] for trial in tested]
        shares = [shares_of_range(trial.guess[name], exact, planes[name], trial.fresh, logarithmic) for trial in tested]
        ds = with_errors(ds, name, away, shares)
        ds = ds.assign_attrs({f"{name}_interpolated_in": "log" if logarithmic else "linear"})
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
        ("worst", "largest error", np.max([np.abs(part).max(1, initial=0) for part in away] or [missing], 0), units),
        ("share", "largest error, as a share of its range,", np.max([*shares] or [missing], 0), "1"),
    ):
        about = {"long_name": f"{words} of interpolated {name}, at tested points before they were used", "units": unit}
        ds[f"{name}_interpolation_{kind}"] = (further, value.reshape(shape), about)
    return ds


def with_interpolated(ds: xr.Dataset, requested: np.ndarray, trials: Sequence[Trial]) -> xr.Dataset:
    """The dataset with the variable `interpolated`, and the numbers of points that it rests on."""
    about = {"long_name": "value is interpolated, not evaluated", "units": "1"}
    random = int(trials[1].fresh.sum()) if len(trials) > 1 else 0
    ds = ds.assign(interpolated=(grid_dims(ds, metrics_of(ds)[0]), ~requested, about))
    return ds.assign_attrs(evaluated=int(requested.sum()), random_points=random)

"""A plane that is evaluated at a growing part of its points, and what a result states of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from landscape.model.task import Task
from landscape.surfaces.surface import surface
from landscape.sweep.grid import Sweep

RANDOM = 32
"""Points drawn at random that a stated error rests on: 0.91^32 = 0.05."""


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

    def marked(self, ds: xr.Dataset, trials: Sequence[Trial]) -> xr.Dataset:
        """The dataset with the variable `interpolated`, and the numbers of points that it rests on."""
        about = {"long_name": "value is interpolated, not evaluated", "units": "1"}
        random = int(trials[1].fresh.sum()) if len(trials) > 1 else 0
        ds = ds.assign(interpolated=(self.dims, ~self.requested, about))
        return ds.assign_attrs(evaluated=int(self.requested.sum()), random_points=random)


@dataclass(frozen=True)
class Trial:
    """What was predicted of points before they were evaluated.

    Args:
        guess: The surface as it was then.
        fresh: Mask over the grid of the points.
    """

    guess: Any
    fresh: np.ndarray


def lattice_trials(
    grid: PartialGrid,
    lattices: Iterable[np.ndarray],
    guess: Callable[[], Any],
    close: Callable[[Trial], bool],
    budget: int | None,
) -> Iterator[tuple[list[Trial], bool]]:
    """Evaluate lattice after lattice, and `RANDOM` points after one that was predicted closely, until these are too.

    Args:
        grid: Its points are evaluated.
        lattices: Masks over the grid.
        guess: The surface from the points that are evaluated.
        close: Whether what was predicted is close enough, asked once the points are evaluated.
        budget: Points evaluated at most; None: all.

    Yields:
        The trials of a lattice, that of the random points last, and whether the surface is complete.
    """
    for lattice in lattices:
        trials, near = list[Trial](), True
        while near and len(trials) < 2 and not grid.requested.all():
            wanted = grid.requested | (_random_points(grid.requested) if trials else lattice)
            if budget is not None and wanted.sum() > budget:
                if trials:
                    yield trials, False
                return
            trials.append(Trial(guess(), wanted & ~grid.requested))
            grid.evaluate(wanted)
            near = bool(grid.requested.all()) or close(trials[-1])
        yield trials, near
        if near:
            return


def _random_points(requested: np.ndarray) -> np.ndarray:
    """Mask of points, drawn from those that are not requested yet; the same ones for the same mask."""
    free = np.flatnonzero(~requested)
    numbers = np.random.default_rng(len(free)).choice(free, min(RANDOM, len(free)), replace=False)
    return np.isin(np.arange(requested.size), numbers).reshape(requested.shape)


def require_plane(sweep: Sweep, tolerance: float, share_of: str) -> None:
    """Raise ValueError if points of the sweep cannot be interpolated, or not to this share of the range or value."""
    if len(sweep.shape) != 2 or sweep.inside is not None:
        raise ValueError(f"the sweep has dimensions {', '.join(sweep.coords)}; interpolation is for full grids of two.")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; it is a share of the {share_of} above 0, such as 0.01.")


def with_errors(ds: xr.Dataset, name: str, away: Sequence[np.ndarray], share: float) -> xr.Dataset:
    """The dataset with what is stated of interpolated values.

    Args:
        away: Differences of each trial; the root mean square is that of the last one.
        share: Largest difference as a share of the range.
    """
    units = ds[name].attrs["units"]
    parts = [part[~np.isnan(part)] for part in away]
    largest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=np.nan)
    for kind, words, value, unit in (
        ("error", "root mean square error of interpolated {}", _root_mean_square(parts), units),
        ("worst", "largest error of interpolated {}", largest, units),
        ("share", "largest error of interpolated {}, as a share of its range", share, "1"),
    ):
        about = {"long_name": f"{words.format(name)}, at tested points before they were used", "units": unit}
        ds[f"{name}_interpolation_{kind}"] = ((), value, about)
    return ds


def _root_mean_square(parts: Sequence[np.ndarray]) -> float:
    return float(np.sqrt(np.square(parts[-1]).mean())) if parts and parts[-1].size else np.nan


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

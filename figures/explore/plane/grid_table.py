"""What is known of the points of a grid, as asked for or roughly, and its surfaces."""

from __future__ import annotations

import numpy as np
import xarray as xr

from figures.explore.plane.places import Geometry, Values
from landscape.surfaces.interpolated_surface import in_log, interpolate, share_of_range


class GridTable:
    """Values at the marks and the points of a grid, marks first.

    Attributes:
        rows: Coefficients of marks and points, shape (M + P, n).
        inside: Which of them are to be evaluated.
        known: Which have a value.
        final: Which have their value in the precision and on the samples that are asked for.

    Args:
        geometry: The grid.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._marks = len(geometry.marks)
        coefficients = [list(mark.coefficients) for mark in geometry.marks]
        self.rows = np.concatenate([np.reshape(coefficients, (-1, geometry.rows.shape[1])), geometry.rows])
        self.inside = np.isfinite(self.rows).all(1)
        self.known = np.zeros(len(self.rows), dtype=bool)
        self.final = np.zeros(len(self.rows), dtype=bool)
        self._values: Values = {}

    def with_marks(self, mask: np.ndarray, *, marks: bool) -> np.ndarray:
        """A mask over grid points (P,) as one over marks and points (M + P,)."""
        return np.concatenate([np.full(self._marks, marks), mask])

    def add(self, where: np.ndarray, values: Values, *, final: bool) -> None:
        """Enter values; rough ones give way to final ones."""
        for name, column in values.items():
            if name not in self._values:
                self._values[name] = np.full((len(self.rows), *column.shape[1:]), np.nan)
            self._values[name][where] = column
        self.known[where] = True
        self.final[where] |= final

    def table(self) -> tuple[dict[tuple[float, ...], int], Values]:
        """Places of all points by their coefficients, and their values."""
        return {tuple(row): place for place, row in enumerate(self.rows.tolist())}, self._values

    def surface(self, mask: np.ndarray, before: np.ndarray | None = None) -> xr.Dataset:
        """The points of a level, labelled as `landscape.surface` does it.

        Args:
            mask: The points, shape (P,).
            before: Points of the level before: with these the whole grid, interpolated from the points of the mask; of
                each metric `<metric>_interpolation_share` says the largest difference between what `before` predicted
                for the others and their values, as a share of the metric's range; `evaluated` counts points.

        Raises:
            ValueError: If a value is infinite, where interpolation is asked for.
        """
        whole = self._geometry
        picked = mask.reshape(whole.shape) if before is None else np.ones(whole.shape, dtype=bool)
        others = [tuple(other for other in range(picked.ndim) if other != axis) for axis in range(picked.ndim)]
        cells = np.ix_(*[np.flatnonzero(picked.any(other)) for other in others])
        dims = tuple(whole.coords)
        coords = {name: whole.coords[name][cells[axis].ravel()] for axis, name in enumerate(dims)}
        ds = xr.Dataset(coords=coords).assign_coords(mark=[mark.name for mark in whole.marks])
        for axis, name in enumerate(dims):
            ds[name].attrs.update(long_name=name, units="1")
            ds[f"mark_{name}"] = ("mark", [mark.at[axis] for mark in whole.marks])
        for name, column in self._values.items():
            further = ("class",) if column.ndim > 1 else ()
            words = _WORDS.get(name, name)
            units = "nats" if name == "loss" else "fraction"
            points = column[self._marks :].reshape(*whole.shape, *column.shape[1:])
            if before is not None:
                masks = mask.reshape(whole.shape), before.reshape(whole.shape)
                points, shares = _interpolated(points, *masks, fraction=units == "fraction")
                ds[f"{name}_interpolation_share"] = (further, shares.reshape(column.shape[1:]))
            points = points[cells]
            ds[name] = ((*dims, *further), points, {"long_name": words, "units": units})
            at_mark = {"long_name": f"{words} at the mark", "units": units}
            ds[f"mark_{name}"] = (("mark", *further), column[: self._marks].copy(), at_mark)
        return ds if before is None else ds.assign_attrs(evaluated=int(mask.sum()))


def _interpolated(
    points: np.ndarray, mask: np.ndarray, before: np.ndarray, *, fraction: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Values (*grid, ...) from those at the points of a mask, and the error of what those before predicted, shape (k,).

    Args:
        points: Values (*grid, ...), read at the points of the mask.
        mask, before: The points of this level and of the one before, over the grid.
        fraction: Whether values stay between 0 and 1.
    """
    values = np.moveaxis(points.reshape(*mask.shape, -1), -1, 0)
    logarithmic, fresh = in_log(values[:, mask]), mask & ~before
    guess, filled = interpolate(values, before), interpolate(values, mask)
    if fraction:
        guess, filled = np.clip(guess, 0, 1), np.clip(filled, 0, 1)
    filled[:, mask] = values[:, mask]
    rows = [slice(place, place + 1) for place in range(len(values))]
    shares = [share_of_range(guess[row], values[row], filled[row], fresh, logarithmic) for row in rows]
    return np.moveaxis(filled, 0, -1).reshape(points.shape), np.array(shares)


_WORDS = {"class_error": "error of the class"}

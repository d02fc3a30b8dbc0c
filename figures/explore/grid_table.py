"""What is known of the points of a grid, in the precision that is asked for or in bfloat16, and its surface."""

from __future__ import annotations

import numpy as np
import xarray as xr

from figures.explore.places import Geometry, Values


class GridTable:
    """Values at the marks and the points of a grid, marks first.

    Attributes:
        rows: Coefficients of marks and points, shape (M + P, n).
        inside: Which of them are to be evaluated.
        known: Which have a value.
        final: Which have their value in the precision that is asked for.
        difference: Largest relative difference of the loss, so far, between values in bfloat16 and those that took
            their place; NaN before the first.

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
        self.difference = float("nan")
        self._values: Values = {}

    def with_marks(self, mask: np.ndarray, *, marks: bool) -> np.ndarray:
        """A mask over grid points (P,) as one over marks and points (M + P,)."""
        return np.concatenate([np.full(self._marks, marks), mask])

    def add(self, where: np.ndarray, values: Values, *, final: bool) -> None:
        """Enter values; those in bfloat16 give way to those in the precision that is asked for."""
        for name, column in values.items():
            if name not in self._values:
                self._values[name] = np.full((len(self.rows), *column.shape[1:]), np.nan)
            if name == "loss" and final:
                self._compare(where[self.known[where]], column[self.known[where]])
            self._values[name][where] = column
        self.known[where] = True
        self.final[where] |= final

    def table(self) -> tuple[dict[tuple[float, ...], int], Values]:
        """Places of all points by their coefficients, and their values."""
        return {tuple(row): place for place, row in enumerate(self.rows.tolist())}, self._values

    def surface(self, mask: np.ndarray) -> xr.Dataset:
        """The points of a level, shape (P,), labelled as `landscape.surface` does it."""
        whole = self._geometry
        picked = mask.reshape(whole.shape)
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
            points = column[self._marks :].reshape(*whole.shape, *column.shape[1:])[cells]
            ds[name] = ((*dims, *further), points, {"long_name": words, "units": units})
            at_mark = {"long_name": f"{words} at the mark", "units": units}
            ds[f"mark_{name}"] = (("mark", *further), column[: self._marks].copy(), at_mark)
        return ds

    def _compare(self, where: np.ndarray, fresh: np.ndarray) -> None:
        before = self._values["loss"][where]
        usable = ~self.final[where] & np.isfinite(before) & np.isfinite(fresh) & (fresh != 0)
        if usable.any():
            worst = float((np.abs(before - fresh) / np.abs(fresh))[usable].max())
            self.difference = float(np.fmax(self.difference, worst))


_WORDS = {"class_error": "error of the class"}

"""`Sweep`: points of parameter space on a labelled grid, as lines, planes and simplices define them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from landscape.results.notebook_table import notebook_table


@dataclass(frozen=True)
class Mark:
    """A named model on a sweep: its coordinates, one per dimension, and its coefficients (n,) in the basis."""

    name: str
    at: tuple[float, ...]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Sweep:
    """The models (origin + coordinates @ axes) @ basis for all coordinates of a grid.

    Args:
        basis: Models or directions, shape (n, d).
        origin: Coefficients (n,) of the point with coordinates 0.
        axes: Change of the coefficients with each coordinate, shape (dimensions, n).
        coords: Grid coordinates by dimension, in the order of `axes`.
        marks: Named models, evaluated exactly, on or off the grid.
        inside: Grid cells that belong to the sweep, shape of the grid; by default all.
        buffers: Floating buffers of the basis, shape (n, b); None if the models have none, or statistics are to be
            recomputed.
        attrs: Attributes of the surface (text and numbers), such as analysis, source and the units of the coordinates.
    """

    basis: Tensor
    origin: np.ndarray
    axes: np.ndarray
    coords: Mapping[str, np.ndarray]
    marks: tuple[Mark, ...] = ()
    inside: np.ndarray | None = None
    buffers: Tensor | None = None
    attrs: Mapping[str, str | float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line: grid, basis and marks."""
        grid = " x ".join(f"{name} {len(values)}" for name, values in self.coords.items())
        marks = ", ".join(mark.name for mark in self.marks)
        return f"Sweep({grid}; {len(self.basis)} models of {self.basis.shape[1]} parameters; marks: {marks or 'none'})"

    def __getattr__(self, name: str) -> Any:
        """Say how a sweep is drawn: it places models and knows no losses yet."""
        if name in ("plot", "plotly"):
            raise AttributeError(
                f"a sweep places models; landscape.surface(task, sweep).{name}() evaluates and draws it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_html_(self) -> str:
        """A small table for notebooks: each coordinate, the models of the basis, the marks."""
        rows: dict[str, object] = {
            name: f"{len(values)} values from {values.min():.4g} to {values.max():.4g}"
            for name, values in self.coords.items()
        }
        models, size = self.basis.shape
        rows |= {"models": models, "parameters": size, "marks": [mark.name for mark in self.marks]}
        return notebook_table(repr(self), rows)

    def __post_init__(self) -> None:
        if self.buffers is not None and len(self.buffers) != len(self.basis):
            raise ValueError(f"buffers have {len(self.buffers)} rows; the basis has {len(self.basis)}.")
        names = [mark.name for mark in self.marks]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two marks are called {twice!r} (of {', '.join(names)}); give other labels=.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Grid size in each dimension."""
        return tuple(len(values) for values in self.coords.values())

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients of every grid point, shape (P, n), in C order of the grid; NaN outside the sweep."""
        grid = np.meshgrid(*self.coords.values(), indexing="ij")
        coordinates = np.stack([axis.ravel() for axis in grid], axis=1)
        rows = self.origin + (coordinates[:, :, None] * self.axes).sum(1)
        if self.inside is not None:
            rows[~self.inside.ravel()] = np.nan
        return rows

    @property
    def mark_coefficients(self) -> np.ndarray:
        """Coefficients of the marks, shape (marks, n)."""
        return np.array([mark.coefficients for mark in self.marks]).reshape(len(self.marks), len(self.basis))


def stack_models(models: Sequence[Tensor], count: int | None = None) -> Tensor:
    """Models as one matrix (n, d).

    Raises:
        ValueError: If they differ in length or are not `count`.
    """
    lengths = [tuple(model.shape) for model in models]
    if len(set(lengths)) != 1 or len(lengths[0]) != 1:
        raise ValueError(f"models have shapes {lengths}; all must be (d,) with one d: were they trained alike?")
    if count is not None and len(models) != count:
        raise ValueError(f"{len(models)} models given; this sweep takes {count}.")
    return torch.stack([model.detach() for model in models])


def axis(low: float, high: float, points: int) -> np.ndarray:
    """`points` evenly spaced coordinates, both ends included.

    Raises:
        ValueError: If there are fewer than 2 points, or low is not below high or their distance not finite.
    """
    if points < 2:
        raise ValueError(f"{points} points asked for; a grid needs at least 2 in each dimension.")
    if not 0 < high - low < np.inf:
        raise ValueError(f"the range {low} to {high} is empty or not finite; low must be below high.")
    return np.linspace(low, high, points)


def make_mark(label: str, at: Sequence[float], coefficients: Sequence[float]) -> Mark:
    """A mark from any sequences of numbers."""
    return Mark(label, tuple(float(value) for value in at), tuple(float(value) for value in coefficients))

"""Interactive loss surfaces: in three dimensions, as contour maps, both side by side, and over rounds with a slider."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.axes.relief import spaced_levels
from figures.interactive.contour_traces import flat as flat_traces
from figures.interactive.contour_traces import lay_flat
from figures.interactive.look import blank
from figures.interactive.slider import sliding
from figures.interactive.surface_traces import deep, labels, lay_deep


def surface3d(ds: xr.Dataset, variable: str = "loss") -> go.Figure:
    """A plane as a surface in three dimensions, its models as labelled points on it.

    The loss has a logarithmic height and colour, other metrics linear ones.

    Args:
        variable: Variable of `ds` to draw.
        ds: The variable over two dimensions; marks as `landscape.surface` gives them.

    Raises:
        ValueError: If the variable does not have two dimensions.
        LookupError: If the surface has no values.
    """
    return surface_rounds([ds], variable)


def explore_contour(ds: xr.Dataset, variable: str = "loss") -> go.Figure:
    """A plane as a contour map with levels spaced in log for the loss; otherwise as `surface3d`.

    Args:
        ds: Result of `landscape.surface`.
        variable: Variable of `ds` to draw.
    """
    return surface_rounds([ds], variable, flat=True)


def surface_rounds(surfaces: Sequence[xr.Dataset], variable: str = "loss", *, flat: bool = False) -> go.Figure:
    """Surfaces of several rounds, one at a time, with a slider over the rounds and one colour scale for all.

    Args:
        surfaces: Planes with attribute `round`; they may have different grids.
        variable: What is shown.
        flat: As contour maps instead of in three dimensions.

    Raises:
        ValueError: If no surface is given, or the variable does not have two dimensions.
        LookupError: If no surface has a value.
    """
    levels = _levels(surfaces, variable)
    last, draw = surfaces[-1], flat_traces if flat else deep
    frames = [draw(ds, variable, levels) for ds in surfaces]
    rounds = [int(ds.attrs.get("round", index)) for index, ds in enumerate(surfaces)]
    figure = blank(height=460 if flat else 560)
    if flat:
        sliding(figure, frames, rounds)
        lay_flat(figure, last, variable)
    else:
        figure.update_layout(margin={"l": 0, "r": 0, "t": 8, "b": 8}, scene=lay_deep(last, variable, levels))
        names = [{"scene.annotations": labels(ds, variable, levels)} for ds in surfaces]
        sliding(figure, frames, rounds, names)
    return figure


def _levels(surfaces: Sequence[xr.Dataset], variable: str) -> np.ndarray:
    """Levels common to surfaces; evenly spaced in log for a positive loss."""
    if not surfaces:
        raise ValueError("no surface was given; compute one, for example run.cached(drift.round_plane).")
    for ds in surfaces:
        if ds[variable].ndim != 2:
            raise ValueError(f"{variable} has dimensions {', '.join(map(str, ds[variable].dims))}; a map needs two.")
    return spaced_levels([ds[variable] for ds in surfaces], log=variable == "loss")

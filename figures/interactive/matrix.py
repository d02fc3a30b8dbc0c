"""A matrix as coloured cells: cosines between clients, layers over rounds."""

import plotly.graph_objects as go
import xarray as xr

from figures.interactive.look import COLOURS, axis, colour_bar, small
from figures.looks import palette

WRITTEN = 12
"""Rows up to which the numbers stand in the cells."""


def heat_map(figure: go.Figure, table: xr.DataArray, ends: tuple[float, float], *, pairs: bool) -> go.Figure:
    """A figure with a matrix in it, the first row above, and its numbers in the cells where it is small.

    Args:
        figure: Empty.
        table: Numbers over rows and columns.
        ends: Numbers at the ends of the colours; these are of signed data if the first is below 0.
        pairs: Rows and columns are the same things: cells are squares.
    """
    rows, columns = (table[dim] for dim in table.dims)
    start = "%{y}, %{x}" if pairs else f"{rows.name} %{{y}}, {columns.name} %{{x}}"
    figure.add_heatmap(
        x=list(map(str, columns.values)), y=list(map(str, rows.values)), z=small(table.values), xgap=1, ygap=1,
        colorscale=palette.SIGNED if ends[0] < 0 else COLOURS, zmin=ends[0], zmax=ends[1],
        colorbar=colour_bar(axis(table), *ends, log=False),
        texttemplate="%{z:.2f}" if max(table.shape) <= WRITTEN else None,
        hovertemplate=f"{start}<br>{table.name} %{{z:.4g}}<extra></extra>",
    )  # fmt: skip
    axes = {"constrain": "domain", "showgrid": False, "zeroline": False, "type": "category"}
    across, up = ("", "") if pairs and "mark" in table.dims else (axis(columns), axis(rows))
    figure.update_xaxes(title=across, **axes)
    return figure.update_yaxes(title=up, autorange="reversed", scaleanchor="x" if pairs else None, **axes)

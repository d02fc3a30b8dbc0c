"""A matrix as coloured cells: cosines between clients, confusions of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from figures.interactive.look import small
from figures.looks import palette

WRITTEN = 12
"""Rows up to which the numbers stand in the cells."""


def cells(
    x: Sequence[Any], y: Sequence[Any], z: np.ndarray, title: str, ends: tuple[float, float], **more: Any
) -> go.Heatmap:
    """A matrix as coloured cells, with its numbers in them where it is small.

    Args:
        x, y: Places or names of columns and rows.
        z: Numbers, rows by columns.
        title: Of the colour bar.
        ends: Numbers at the ends of the colours.
        more: Further words of a heat map; `hovertemplate` without its end.
    """
    bar = {"title": {"text": title}, "thickness": 12, "outlinewidth": 0, "len": 0.9}
    look = {"colorscale": palette.SIGNED, "texttemplate": "%{z:.2f}", "xgap": 1, "ygap": 1, "colorbar": bar, **more}
    look["hovertemplate"] = f"{look['hovertemplate']}<extra></extra>"
    if max(np.shape(z)) > WRITTEN:
        del look["texttemplate"]
    return go.Heatmap(x=x, y=y, z=small(z), zmin=ends[0], zmax=ends[1], **look)


def square(figure: go.Figure, x: str, y: str, **ticks: Any) -> go.Figure:
    """The figure of a matrix with the names of its axes, square cells and the first row above."""
    axes = {"constrain": "domain", "showgrid": False, "zeroline": False, **ticks}
    return figure.update_xaxes(title=x, **axes).update_yaxes(title=y, autorange="reversed", scaleanchor="x", **axes)

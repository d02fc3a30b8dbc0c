"""Curves of many points with fewer of them, that look the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import xarray as xr

MOST = 24_000
"""Points of a figure from which its curves are thinned out: a browser draws them at once. (WebGL, which would draw
more, makes programs at run time, which the page's content security policy refuses.)"""

LEAST = 100
"""Points that each curve keeps at least."""


def thinned(values: xr.DataArray, curves: int, window: Sequence[float] = ()) -> xr.DataArray:
    """At most `MOST / curves` points of a curve: the smallest and the largest of each of equally many rounds.

    Args:
        values: Over `round`; rounds without a value are left out where points are.
        curves: Number of curves in the figure.
        window: First and last round that are looked at; only these and their neighbours are kept. Empty: all.
    """
    most = max(LEAST, MOST // max(1, curves))
    if len(window) == 2:
        inside = (values["round"].values >= min(window)) & (values["round"].values <= max(window))
        near = np.convolve(inside, [1, 1, 1], "same") > 0 if inside.any() else inside
        values = values.isel(round=near)
    if values.size <= most:
        return values
    edges = np.linspace(0, values.size, most // 2 + 1).astype(int)
    places: set[int] = set()
    for first, last in pairwise(edges.tolist()):
        part = values.values[first:last]
        if np.isfinite(part).any():
            places |= {first + int(np.nanargmin(part)), first + int(np.nanargmax(part))}
        else:
            places.add(first)  # a gap stays one
    return values.isel(round=sorted(places | {0, values.size - 1}))

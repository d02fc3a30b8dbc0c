"""Curvature: Hessian eigenvalues over rounds, and slices along the sharpest direction."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from figures import style
from figures.curves import algorithms, curve, mean


def eigenvalues(ds: xr.Dataset, *, ax: Axes | None = None, rank: int = 1, **look: Any) -> Axes:
    """One Hessian eigenvalue of the global model over rounds, one line a method, on a logarithmic axis.

    Args:
        ds: eigenvalue over round and rank, and perhaps `algorithm` and `seed`.
        rank: 1 for the largest.
    """
    chosen = ds["eigenvalue"].sel(rank=rank)
    named = chosen.assign_attrs(long_name=rf"Hessian eigenvalue $\lambda_{{{rank}}}$")
    look = {"log": bool((chosen.fillna(1) > 0).all()), "marker": "o", "markersize": 2.5, **look}
    return curve(ds.assign(eigenvalue=named), ax=ax, variable="eigenvalue", **look)


def ratio(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Ratio of the largest eigenvalue to the last computed one, over rounds."""
    last = int(ds["rank"].max()) if "rank" in ds.coords else 5
    named = ds["ratio"].assign_attrs(long_name=rf"$\lambda_1\,/\,\lambda_{{{last}}}$")
    look = {"marker": "o", "markersize": 2.5, **look}
    return curve(ds.assign(ratio=named), ax=ax, variable="ratio", **look)


def sharpest(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "loss", above: bool = False, **look: Any
) -> Axes:
    """A slice through each model along its sharpest direction, whose eigenvalue stands in the legend.

    Args:
        ds: The variable over t, eigenvalue (), and perhaps `algorithm` and `seed`.
        above: Height above the model itself, so that curvatures are compared; else the level as it is.
    """
    ax = style.axes(ax)
    values = ds[variable]
    if above:
        text = f"{values.attrs.get('long_name', variable)} above the model"
        values = (values - values.sel(t=0, method="nearest")).assign_attrs({**values.attrs, "long_name": text})
    curve(ds.assign({variable: values}), ax=ax, variable=variable, over="t", names=False, **look)
    if "eigenvalue" in ds:
        parts = algorithms(ds["eigenvalue"])
        for line, (name, part) in zip(ax.lines[-len(parts) :], parts, strict=True):
            value = rf"$\lambda_1$ = {float(mean(part, 'seed')):.3g}"
            line.set_label(value if name is None else f"{style.label(name)}, {value}")
    ax.set_xlabel("distance along the sharpest direction")
    return ax

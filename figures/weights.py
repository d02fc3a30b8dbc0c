"""Weights: the shrinking factor and client weights that methods use, norms, and the balance of two forces."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from figures import style
from figures.curves import curve, require


def shrink(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """The shrinking factor gamma over rounds; the line at 1 is plain averaging."""
    ax = style.axes(ax)
    named = ds["gamma"].assign_attrs(long_name=r"shrinking factor $\gamma$")
    curve(ds.assign(gamma=named), ax=ax, variable="gamma", **look)
    ax.axhline(1, color="#555555", linewidth=0.6, zorder=1)
    return ax


def shares(ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "weights", **look: Any) -> Axes:
    """Relative weights of the clients as a map, clients by rounds; white where a client was not in the cohort.

    Args:
        ds: The variable over round and client. "weight_ratio", the weight over the client's share of the data, is
            drawn in a diverging map centred at 1.
        look: As `Axes.pcolormesh` takes it.
    """
    values = ds[variable].transpose("client", "round")
    require(values)
    ax = style.axes(ax)
    top = float(values.max())
    if variable == "weight_ratio":
        reach = max(float(abs(values - 1).max()), 1e-3)
        look = {"cmap": style.SIGNED, "vmin": 1 - reach, "vmax": 1 + reach, "shading": "nearest", **look}
        ax.set_facecolor("#e4e4e4")
    else:
        look = {"cmap": style.SEQUENTIAL, "vmin": 0, "vmax": top if top > 0 else 1, "shading": "nearest", **look}
    mesh = ax.pcolormesh(values["round"].values, values["client"].values, np.ma.masked_invalid(values.values), **look)
    mesh.set_rasterized(True)
    ax.grid(False)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set_xlabel("round")
    ax.set_ylabel("client")
    return ax


def norms(ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "end_norm", **look: Any) -> Axes:
    """A norm of models or updates over rounds; with one run, also that of every client's update as a pale dot."""
    ax = style.axes(ax)
    if variable == "update_norm_mean" and "update_norm" in ds and not {"algorithm", "seed"} & set(ds.dims):
        for client in ds["update_norm"].transpose("client", "round"):
            ax.plot(ds["round"], client, ".", color=style.CLIENT, markersize=2, alpha=0.5)
    return curve(ds, ax=ax, variable=variable, **look)


def balance(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Norms of the optimisation term (solid) and of the regularisation term (dashed) over rounds, logarithmic."""
    ax = style.axes(ax)
    curve(ds, ax=ax, variable="optimisation", **look)
    known = ds.assign(regularisation=ds["regularisation"].where(ds["regularisation"] > 0))
    curve(known, ax=ax, variable="regularisation", names=False, log=True, linestyle="--", **look)
    ax.set_ylabel("norm of the term")
    return ax

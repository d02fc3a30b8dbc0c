"""Curvature: Hessian eigenvalues over rounds, and slices along the sharpest direction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from figures.axes.curves import (
    DOTS,
    curve,
    is_logarithmic,
    line_with_band,
    mean,
    seeds_at,
    split_algorithms,
)
from figures.axes.error_bars import error_band
from figures.axes.method_looks import line_look, method_look
from figures.looks import style
from figures.looks.look import current


def eigenvalues(ds: xr.Dataset, *, ax: Axes | None = None, rank: int = 1, **look: Any) -> Axes:
    """One Hessian eigenvalue of the global model over rounds, one line per method, on a logarithmic axis.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        look: Keyword arguments of the drawn lines or areas.
        ds: eigenvalue over round and rank, and perhaps `algorithm` and `seed`.
        rank: 1 for the largest.
    """
    selected = ds["eigenvalue"].sel(rank=rank)
    remark_unconverged(ds.sel(rank=rank))
    named = selected.assign_attrs(long_name=rf"Hessian eigenvalue $\lambda_{{{rank}}}$")
    look = {"log": bool((selected.fillna(1) > 0).all()), **DOTS, **look}
    return curve(ds.assign(eigenvalue=named), ax=ax, variable="eigenvalue", **look)


def sharpest_slice(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "loss", above: bool = False, **look: Any
) -> Axes:
    """A slice through each model along its sharpest direction, whose eigenvalue stands in the legend.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        look: Keyword arguments of the drawn lines or areas.
        ds: The variable over t, eigenvalue (), and perhaps `algorithm` and `seed`.
        above: Height above the model itself, so that curvatures are compared; else the level as it is.
    """
    ax = style.axes(ax)
    values = ds[variable]
    if above:
        text = f"{values.attrs.get('long_name', variable)} above the model"
        values = (values - values.sel(t=0, method="nearest")).assign_attrs({**values.attrs, "long_name": text})
    log = is_logarithmic(values, bool(look.pop("log", False)) and bool((values.fillna(1) > 0).all()))
    for name, series in split_algorithms(values):
        artist = line_look(name, **look)
        if "eigenvalue" in ds:
            text = rf"$\lambda_1$ = {float(mean(_eigenvalues(ds, name), 'seed')):.3g}"
            artist["label"] = text if name is None else f"{style.label(name)}, {text}"
        line_with_band(series, ax=ax, over="t", log=log, **artist)
    if log:
        style.logarithmic(ax)
    return style.name_axes(ax, "distance along the sharpest direction", style.text(values))


def remark_unconverged(ds: xr.Dataset) -> None:
    """Remark in legend and caption that some eigenvalues, which leave gaps, did not converge."""
    if "converged" in ds and bool((ds["converged"] == 0).any()):
        current().remark(UNCONVERGED)


UNCONVERGED = "gaps: eigenvalues that did not converge"
"""Words below a picture that leaves some out."""

_SLANTED: dict[str, Any] = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
"""Names along an axis that are longer than their places."""

FLOOR = 1e-8
"""Spectral density, as a part of the highest peak, below which it is not shown."""

STEMS = "\nstems: single eigenvalues"
"""What stands outside the bulk, in words."""


def density(ds: xr.Dataset, *, ax: Axes | None = None, floor: float = FLOOR, filled: bool = False, **look: Any) -> Axes:
    """Spectral density, one line per method, on a logarithmic axis that ends at `floor` of the highest peak.

    Eigenvalues outside the bulk are stems as high as the Gaussians that they are in the density; the line is the bulk.

    Args:
        ds: density and eigenvalue over `mark`, the positions on each method's own grid, and perhaps `algorithm`; those
            of the bulk and the outliers as `landscape.density` names them.
        filled: The area below the line has the method's colour too.
            Where there is a density_error, a grey band reaches one standard error up and down.
    """
    ax = style.axes(ax)
    highest, line = float(ds["density"].max()), "bulk" if "bulk" in ds else "density"
    if not highest > 0:
        raise LookupError("the spectral density is 0 everywhere; there is no spectrum to draw.")
    for name, series in split_algorithms(ds[line]):
        across = _eigenvalues(ds, name).values
        artist = line_look(name, **{"linewidth": 1.0, **look})
        if filled:
            artist = {**artist, "linestyle": "-", "linewidth": 0.7}
            ax.fill_between(across, 1e-300, series.values, color=artist.get("color"), alpha=0.45, linewidth=0)
        if f"{line}_error" in ds:
            error_band(series, ds[f"{line}_error"], across, ax)
        (outline,) = ax.plot(across, series.values, **artist)
        places, heights = outliers(ds if name is None or "algorithm" not in ds.dims else ds.sel(algorithm=name))
        ax.vlines(places, 1e-300, heights, colors=outline.get_color(), linewidth=1.0)
        ax.plot(places, heights, "o", color=outline.get_color(), markersize=2.2)
    ax.set_yscale("log")
    ax.set_ylim(floor * highest, 2 * highest)
    return style.name_axes(ax, "eigenvalue", f"spectral density{STEMS * (line == 'bulk')}")


def outliers(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Places and heights of the eigenvalues outside the bulk; none where a result does not have them."""
    if "outlier" not in ds:
        return np.empty(0), np.empty(0)
    there = np.isfinite(ds["outlier"].values)
    return ds["outlier"].values[there], ds["outlier_density"].values[there]


def grid(ds: xr.Dataset) -> xr.DataArray:
    """The eigenvalues at which a density is known."""
    return ds["eigenvalue" if "eigenvalue" in ds else "value"]


def _eigenvalues(ds: xr.Dataset, name: str | None) -> xr.DataArray:
    values = grid(ds)
    return values if name is None or "algorithm" not in ds.dims else values.sel(algorithm=name)


def same_window(ds: xr.Dataset, axs: Iterable[Axes], highest: float) -> None:
    """One range of eigenvalues and of densities for panels: where a density is above the floor of the highest."""
    inside = ds["eigenvalue"].where(ds["density"] > FLOOR * highest)
    low, high = float(inside.min()), float(inside.max())
    room = 0.02 * max(high - low, 1e-12)
    for ax in axs:
        ax.set(xlim=(low - room, high + room), ylim=(FLOOR * highest, 2 * highest))


def batches(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Largest eigenvalues of minibatches as dots in a column per method, all seeds together; a bar is their median.

    Args:
        ds: eigenvalue over `batch`, and perhaps `algorithm` and `seed`.
    """
    ax = style.axes(ax)
    remark_unconverged(ds)
    pairs = split_algorithms(ds["eigenvalue"])
    for index, (name, series) in enumerate(pairs):
        values = series.values[np.isfinite(series.values)].ravel()
        if not len(values):
            continue
        colour = {} if name is None else {"color": style.colour(name)}
        across = index + 0.5 * (np.arange(len(values)) / max(len(values) - 1, 1) - 0.5)
        ax.plot(across, values, **{"linestyle": "", "marker": ".", "markersize": 2.5, "alpha": 0.6, **colour, **look})
        ax.hlines(np.median(values), index - 0.35, index + 0.35, colors="black", linewidth=1.0)
    ax.set_xticks(range(len(pairs)), ["" if name is None else style.label(name) for name, _ in pairs], rotation=90)
    return style.name_axes(ax, "method", r"$\lambda_1$ of single batches")


def layers(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Magnitude of each layer's largest eigenvalue in log: a column per layer, in the model's order, a dot per method.

    A hollow dot stands for a negative eigenvalue. Several seeds are shown as `curves.seeds_at` does, about their
    geometric mean.

    Args:
        ds: eigenvalue over `layer`, and perhaps `algorithm` and `seed`.
        look: Passed to `Axes.plot`.
    """
    ax = style.axes(ax)
    remark_unconverged(ds)
    ground = mpl.rcParams["axes.facecolor"]
    positions, pairs = np.arange(ds.sizes["layer"]), split_algorithms(ds["eigenvalue"])
    for index, (name, series) in enumerate(pairs):
        across = positions + (index - (len(pairs) - 1) / 2) * 0.7 / len(pairs)
        table = abs(series).transpose("layer", ...).values.reshape(len(positions), -1)
        for position, seeds in zip(across, table, strict=True):
            seeds_at(seeds, float(position), ax, log=True)
        artist: dict[str, Any] = {"marker": "o" if name is None else style.marker(name), "linestyle": "", "zorder": 5}
        artist |= {**method_look(name), "markersize": 3.5}
        with np.errstate(divide="ignore"):
            logs = mean(series.copy(data=np.log(abs(series.values))), "seed")
        middle = logs.copy(data=np.exp(logs.values))
        (dots,) = ax.plot(across, middle.values, **{**artist, **look})
        below = mean(series, "seed").values < 0
        hollow = {**artist, "markerfacecolor": ground, "markeredgecolor": dots.get_color(), "label": "_nolegend_"}
        ax.plot(across[below], middle.values[below], **{**hollow, **look})
    ax.set_xlim(-0.6, len(positions) - 0.4)
    ax.set_xticks(positions[:-1] + 0.5, minor=True)
    ax.tick_params(axis="x", which="minor", length=0)
    ax.grid(False, axis="x", which="major")
    ax.grid(True, axis="x", which="minor")
    style.logarithmic(ax)
    every = max(1, len(positions) // 20)
    names = [str(name) for name in ds["layer"].values[::every]]
    ax.set_xticks(positions[::every], names, **_SLANTED)
    return style.name_axes(ax, "parameter tensor")

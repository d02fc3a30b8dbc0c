"""Weights that methods use: of clients over rounds, spread over runs, as the server learns them; norms of models."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import MaxNLocator, NullFormatter

from figures.axes.curves import require_values
from figures.axes.matrices import hundredths
from figures.looks import palette, style


def shares(ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "weights", **look: Any) -> Axes:
    """Relative weights of the clients as a map, clients by rounds; pale where a client was not in the cohort.

    Clients are sorted by their mean weight, so that those which keep a larger or smaller one are seen, in grey too.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over round and client. "weight_ratio", the weight over the client's share of the data, is
            drawn in a logarithmic map centred at 1; a line parts the clients with a mean below 1.
        look: Passed to `Axes.pcolormesh`.
    """
    values = require_values(ds[variable].transpose("client", "round"))
    values = values.isel(client=np.argsort(values.mean("round").values, kind="stable"))
    ax, label = style.axes(ax), "clients, sorted by mean weight"
    top = float(values.max())
    if variable == "weight_ratio":
        furthest = np.exp(abs(np.log(values.where(values > 0))).max())
        reach = float(np.nan_to_num(np.clip(furthest, 1.001, MOST), nan=MOST))  # all weights may be 0
        look = {"cmap": style.sequential(), "norm": LogNorm(1 / reach, reach, clip=True), "shading": "nearest", **look}
        ax.axhline(float((values.mean("round") < 1).sum()) - 0.5, color="black", linewidth=0.9)
        values = values.where(values.isnull() | (values > 0), 1 / reach)
        ax.set_facecolor("white")
        label += " (line: 1)"
    else:
        look = {"cmap": style.sequential(), "vmin": 0, "vmax": top if top > 0 else 1, "shading": "nearest", **look}
    mesh = ax.pcolormesh(values["round"].values, np.arange(len(values)), np.ma.masked_invalid(values.values), **look)
    mesh.set_rasterized(True)
    ax.grid(False)
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    return style.name_axes(ax, "round", label, integers=5)


MOST = 8.0
"""Ratio of a weight to a share, or of a share to a weight, beyond which colours do not differ."""

FEW = 20
"""Runs below which a distribution is a dot per run in place of a histogram."""


def histogram(ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "ratio", **look: Any) -> Axes:
    """How a number is spread over runs: a histogram stacked by method, of fewer than 20 runs a dot per run and method.

    The line is the mean over all. The axis is logarithmic where the largest value is more than 20 times the smallest.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over sample, with the coordinate algorithm.
        look: Passed to `Axes.hist`, or of few runs to `Axes.plot`.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    names = style.order(map(str, ds.algorithm.values))
    groups = [values.values[ds.algorithm.values == name] for name in names]
    finite = values.values[np.isfinite(values.values)]
    wide = finite.min() > 0 and finite.max() > 20 * finite.min()
    middle = float(finite.mean())
    if few := len(finite) < FEW:
        for index, (name, group) in enumerate(zip(names, groups, strict=True)):
            artist = {"color": style.colour(name), "marker": style.marker(name), "markersize": 4, "linestyle": ""}
            ax.plot(group, np.full(len(group), float(index)), **{**artist, **look})
        ax.set_yticks(range(len(names)), [style.label(name) for name in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
    else:
        count = max(5, int(np.ceil(2 * len(finite) ** (1 / 3))))
        edges = np.histogram_bin_edges(finite, bins=count)
        if wide:
            edges = np.geomspace(finite.min(), finite.max(), count + 1)  # its ends are exact
        about: dict[str, Any] = {"color": [style.colour(name) for name in names], "label": [*map(style.label, names)]}
        ax.hist(groups, **{"bins": edges, "stacked": True, "alpha": 0.8, **about, **look})
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.axvline(middle, color=style.GLOBAL, linewidth=1.0, label=f"mean {middle:.3g} of {len(finite)} runs")
    if wide:
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
    return style.name_axes(ax, style.text(values), "" if few else "runs")


def epochs(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "gamma", settled: str | None = None, **look: Any
) -> Axes:
    """What the server learned after each of its epochs: a line per round, or a pale line per client.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over epoch and round, or over epoch and client.
        settled: Variable with the epoch from which a curve has settled, dotted; the last round's where there are
            several.
        look: Passed to `Axes.plot`.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    if "client" in values.dims:
        for client in values.transpose("client", "epoch"):
            ax.plot(values["epoch"], client, **{"color": style.CLIENT, "linewidth": 0.8, **look})
    else:
        for index, (colour, number) in enumerate(
            zip(style.steps(values.sizes["round"]), values["round"].values, strict=True)
        ):
            label = {"color": colour, "label": f"round {number}", "linestyle": palette.DASHES[index % 4]}
            ax.plot(values["epoch"], values.sel(round=number), **{**label, **look})
    if settled is not None and np.isfinite(end := float(np.ravel(ds[settled].values)[-1])):
        ax.axvline(end, color="#555555", linewidth=0.9, linestyle=":", zorder=1, label="settled (last round)")
    return style.name_axes(ax, "server epoch", style.text(values), integers=5)


def correlations(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Correlations with their intervals, one row per sample from the top, and both as numbers; hollow if 0 is inside.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        ds: pearson, low and high over sample; "undefined" where there is no correlation.
        look: Passed to `Axes.errorbar`.
    """
    ax = style.axes(ax)
    for row, (r, low, high) in enumerate(zip(ds["pearson"].values, ds["low"].values, ds["high"].values, strict=True)):
        text = "undefined" if np.isnan(r) else hundredths(r)
        text += f" [{hundredths(low)}, {hundredths(high)}]" * bool(np.isfinite(low))
        if np.isfinite(r):
            reach = None if np.isnan(low) else [[r - low], [high - r]]
            face = mpl.rcParams["axes.facecolor"] if low <= 0 <= high else "#333333"
            dot = {"fmt": "o", "color": "#333333", "markerfacecolor": face, "markersize": 3.5, "lw": 1}
            ax.errorbar(r, row, xerr=reach, **{**dot, **look})
        side = 0.02 if np.isnan(r) or r > 0 else 0.98  # away from the dot
        note = ax.annotate(text, (side, row), (0, 4), ("axes fraction", "data"), "offset points")
        note.set(ha="left" if side < 0.5 else "right", fontsize=style.small())
        ground = {"facecolor": mpl.rcParams["axes.facecolor"], "edgecolor": "none", "pad": 0.2}
        note.set_bbox(ground)  # it may lie over the line at 0
    ax.axvline(0, color="#555555", linewidth=0.6, zorder=1)
    ax.set_xlim(-1, 1)
    ax.set_ylim(ds.sizes["sample"] - 0.5, -0.8)
    return style.name_axes(ax)

"""Drift: coherence, bias, variances and gain over rounds, and what averaging buys."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from figures.axes.curves import DOTS, curve, line_with_band, mark_level, mean, require_values, split_algorithms
from figures.looks import palette, style


def coherence(
    ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "coherence", raw: bool = True, **look: Any
) -> Axes:
    """Local gradient coherence over rounds: every round pale, the moving average bold, the critical point dotted.

    Its interval is a band; a title names the methods without a clear one.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        look: Keyword arguments of the drawn lines or areas.
        ds: coherence, coherence_smooth (round,), critical_point, critical_low and critical_high (), and perhaps
            `algorithm` and `seed`.
        variable: "coherence", or "mean_cosine", which has no moving average.
        raw: Also the single rounds.
    """
    ax = style.axes(ax)
    smooth = f"{variable}_smooth" if f"{variable}_smooth" in ds else variable
    named = ds[smooth].assign_attrs(long_name=ds[variable].attrs.get("long_name", variable))
    curve(ds.assign({smooth: named}), ax=ax, variable=smooth, **look)
    for name, series in split_algorithms(ds[variable]) if raw and smooth != variable else []:
        colour = style.colour(name) if name is not None else style.CLIENT
        ax.plot(series["round"], mean(series, "seed"), color=colour, linewidth=0.5, alpha=0.5)
    mark_level(ax)
    _critical_points(ds, ax, variable)
    return style.name_axes(ax)


def group_cosines(ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "group_cosine", **look: Any) -> Axes:
    """Mean cosine of client updates within and between groups: every round pale, the moving average bold.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over round and pair, perhaps seed, and perhaps its moving average (..._smooth).
        look: Passed to `Axes.plot`, for the bold lines.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    smooth = ds.get(f"{variable}_smooth", values)
    pairs = list(map(str, values["pair"].values))
    for colour, dash, pair in zip(style.steps(len(pairs)), cycle(palette.DASHES), pairs, strict=False):
        if smooth is not values:
            raw = mean(values.sel(pair=pair), "seed")
            ax.plot(raw["round"], raw, ".-", color=colour, linewidth=0.5, markersize=1.5, alpha=0.45)
        shown = {"color": colour, "linestyle": dash, "label": _pair_label(pair), **look}
        line_with_band(smooth.sel(pair=pair), ax=ax, over="round", **shown)
    mark_level(ax)
    return style.name_axes(ax, "round", "mean cosine of updates", integers=5)


def evenness(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """How evenly each client holds the classes, from least to most; filled for clients of the balanced group.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        ds: evenness and balanced over client.
        look: Passed to `Axes.scatter`.
    """
    require_values(ds["evenness"])
    ax = style.axes(ax)
    clients = ds[["evenness", "balanced"]].dropna("client").sortby("evenness")
    first, _, last = style.steps(3)
    for group, colour, name in ((1, first, "balanced"), (0, last, "imbalanced")):
        inside = np.flatnonzero(clients["balanced"].values == group)
        ax.scatter(
            inside,
            clients["evenness"].values[inside],
            **{"s": 10, "color": [colour], "label": name, "clip_on": False, **look},
        )
    ax.set_ylim(0, 1.05)
    return style.name_axes(ax, "clients, sorted", "class entropy / ln C", integers=5)


def variances(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Client-drift variance (solid) and update change (dashed) over rounds, on a logarithmic axis.

    Args:
        ds: Result of `drift.drift_variances`.
        ax: Axes to draw into; the current ones of pyplot by default.
        look: Keyword arguments of the drawn lines or areas.
    """
    ax = style.axes(ax)
    curve(ds, ax=ax, variable="client_variance", **look)
    curve(ds, ax=ax, variable="change_variance", names=False, log=True, linestyle="--", **look)
    return style.name_axes(ax, None, "drift variance per parameter")


def kalman_gains(ds: xr.Dataset, *, ax: Axes | None = None, **look: Any) -> Axes:
    """Box plots of the Kalman gain over rounds and seeds, one box per concentration, in groups of local epochs.

    Boxes of more epochs have paler shades of the method's colour, and hatches. Whiskers reach the last values within
    1.5 interquartile ranges. An infinite concentration is called natural: users who hold their own data.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        ds: gain over concentration, perhaps epochs, and whatever is pooled; its attribute method names the colour.
        look: Passed to `Axes.boxplot`.
    """
    values = require_values(ds["gain"])
    ax = style.axes(ax)
    groups = [values.sel(epochs=value) for value in values.epochs] if "epochs" in values.dims else [values]
    colour = np.array(to_rgb(style.colour(ds.attrs["method"]) if "method" in ds.attrs else style.CLIENT))
    width, pale = 0.8 / len(groups), np.linspace(0.4, 0.8, len(groups))
    every = [[np.ravel(array.values) for array in group.transpose("concentration", ...)] for group in groups]
    filled = np.array([[np.isfinite(values).any() for values in pooled] for pooled in every])
    offsets = (np.cumsum(filled, axis=0) - (filled.sum(0) + 1) / 2) * width  # boxes of a partition around its tick
    for number, group in enumerate(groups):
        pooled = [values[np.isfinite(values)] for values in every[number]]
        positions = np.arange(len(pooled)) + offsets[number]
        line = {"color": "#333333", "linewidth": 0.7}
        parts: dict[str, Any] = {name: dict(line) for name in ("boxprops", "whiskerprops", "capprops")}
        parts["medianprops"] = {**line, "color": "black", "linewidth": 1.2}
        parts["flierprops"] = {"marker": ".", "markersize": 2.5, "markeredgecolor": "#777777"}
        where = {"positions": positions, "widths": width * 0.8, "patch_artist": True, "manage_ticks": False}
        boxes = ax.boxplot(pooled, **{**where, **parts, **look})
        for box in boxes["boxes"]:
            box.set(facecolor=tuple(1 - (1 - pale[number]) * (1 - colour)), hatch=_HATCHES[number % len(_HATCHES)])
        if len(groups) > 1:
            boxes["boxes"][0].set_label(f"{float(group.epochs):g} epoch{'s' if group.epochs > 1 else ''}")
    levels = ["natural" if np.isinf(value) else f"Dir({value:g})" for value in ds.concentration.values]
    ax.set_xticks(range(len(levels)), levels)
    ax.set_xlim(-0.6, values.sizes["concentration"] - 0.4)
    ax.grid(False, axis="x")
    return style.name_axes(ax, "partition (Dirichlet concentration)", "Kalman gain G")


_HATCHES = ("", "////", "....", "xxxx")
"""Hatches of boxes side by side."""


def averaged(ds: xr.Dataset, *, ax: Axes | None = None, variable: str = "error", **look: Any) -> Axes:
    """Error against the number of averaged models, one line per round, in a band of one std over the draws.

    Args:
        ds: Result of `drift.error_averaged`.
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        look: Keyword arguments of the drawn lines or areas.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    pooled = values.stack(sample=[dim for dim in ("seed", "draw") if dim in values.dims])
    for colour, number in zip(style.steps(values.sizes["round"]), values["round"].values, strict=True):
        averages = pooled.sel(round=number)
        artist = {**DOTS, "color": colour, "label": f"round {number}", **look}
        line_with_band(averages, ax=ax, over="models", across="sample", **artist)
    return style.name_axes(ax, "averaged models", style.text(values), integers=6)


def _critical_points(ds: xr.Dataset, ax: Axes, variable: str) -> None:
    """Dotted lines at the critical points, bands over their intervals, and a title with the methods that have none."""
    level = ds["critical_low"].attrs.get("level", 0.95)
    several = ds["critical_point"].size > 1 and "seed" in ds["critical_point"].dims
    label: str | None = f"critical point{' of a seed' if several else ''}, {100 * level:g} % bootstrap interval"
    without = []
    for name, series in split_algorithms(ds[variable]):
        colour = style.colour(name) if name is not None else style.CLIENT
        selected = ds.sel(algorithm=name) if "algorithm" in ds.dims else ds
        present = np.ravel(series.notnull().any("round"))
        points, lows, highs = (np.ravel(selected[end])[present] for end in _POINT)
        clear = np.isfinite(points)
        for point, low, high in zip(points[clear], lows[clear], highs[clear], strict=True):
            ax.axvspan(low, high, color=colour, alpha=0.12, linewidth=0, zorder=0)
            ax.axvline(point, color=colour, linewidth=0.9, linestyle=":", zorder=1, label=label)
            label = None
            if name is not None and ds["critical_point"].size > 1:
                title = ax.text(point, 0.98, f" {style.label(name)}", va="top", rotation=90, fontsize=style.small())
                title.set(transform=ax.get_xaxis_transform(), path_effects=style.outline(), in_layout=False)
        if not clear.all():
            seeds = f" ({(~clear).sum()} of {len(clear)} seeds)" if len(clear) > 1 else ""
            without.append(f"{style.label(name)}{seeds}" if name is not None else seeds.strip(" ()"))
    if without:
        named = ": " + ", ".join(filter(None, without)) if any(without) else ""
        ax.set_title(f"no clear critical point{named}", fontsize=style.small())


_POINT = ("critical_point", "critical_low", "critical_high")


def _pair_label(pair: str) -> str:
    """A pair of groups in words: "a" within one group, "a and b" between two."""
    first, _, second = pair.partition("-")
    return f"within {first}" if first == second else f"{first} to {second}" if second else pair

"""Curves with their seeds: any variable over rounds, one line per method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from drift.analyses.over_seeds import FEW_SEEDS, INTERVAL, t_interval
from figures.axes.method_looks import line_look
from figures.looks import style
from figures.looks.look import Drawing, current


def curve(
    ds: xr.Dataset,
    *,
    ax: Axes | None = None,
    variable: str = "accuracy",
    over: str = "round",
    log: bool = False,
    names: bool = True,
    label: str | None = None,
    level: float | None = None,
    **look: Any,
) -> Axes:
    """A variable over rounds (or another dimension): one line per method, its seeds as `line_with_band` shows them.

        figures.curve(drift.coherence(run), variable="mean_cosine")

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        ds, variable, over: One over `over`, the dimension along the horizontal axis, perhaps `algorithm` and `seed`.
        log, names: Logarithmic vertical axis; methods appear in the legend.
        label, level: Of the vertical axis, in place of the name of the variable; where a thin line marks a value.
        look: Passed to `Axes.plot` for every line; any `marker` stands for that of the method.

    Raises:
        LookupError: If the variable has no values.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    log = is_logarithmic(values, log)
    for name, series in split_algorithms(values):
        artist = line_look(name, **look)
        shown = {} if names else {"label": "_nolegend_"}
        line_with_band(series, ax=ax, over=over, log=log, **{**artist, **shown})
    if log:
        style.logarithmic(ax)
    if level is not None:
        mark_level(ax, level)
    across = "round" if over.endswith("_round") else style.text(ds[over])
    return style.name_axes(ax, across, style.text(values) if label is None else label)


def row(ds: xr.Dataset, axs: Iterable[Axes], labels: Mapping[str, str], **look: Any) -> None:
    """A variable in each of several axes, by its label, as `curve` draws it."""
    for ax, (variable, label) in zip(axs, labels.items(), strict=False):
        curve(ds, ax=ax, variable=variable, label=label, **look)


def mark_level(ax: Axes, level: float = 0.0) -> None:
    """A thin line across the axes at a value."""
    ax.axhline(level, color="#555555", linewidth=0.6, zorder=1)


MOVING = WeakKeyDictionary[Line2D, str]()  # lines that are moving means, in words
DOTS: dict[str, Any] = {"marker": "o", "markersize": 2.5}
"""Look of curves through few values."""


def is_logarithmic(values: xr.DataArray, usual: bool) -> bool:
    """Whether their axis is logarithmic: as asked for if all are positive, else as usual if none is negative."""
    drawing, low = current(), float(values.min())
    paired, wanted = bool(drawing.look.paired_to), drawing.look.log
    asked = wanted is not None and (not wanted or (low > 0 and not paired))
    if (log := bool(drawing.take("log")) if asked else usual and not paired and not low < 0) and low == 0:
        drawing.remark("gaps: a value is 0, which a logarithmic axis does not have")
    return log


def line_with_band(
    values: xr.DataArray, *, ax: Axes, over: str, across: str = "seed", log: bool = False, **look: Any
) -> None:
    """The mean line of values over the dimension `across`, and what varies over it.

    Seeds below five are a thin line each; from five on, the mean has its 95 % t interval. On a logarithmic axis mean
    and interval are geometric. Other dimensions have a band of one standard deviation. The legend tells which (`band`).
    Points without a value are left out; a single one is a dot. Markers at a slice (`markevery`) have bars, not a band.

    Args:
        values, across, log: Over `over`, and perhaps the averaged dimension `across`; whether the axis is logarithmic.
        look: Passed to `Axes.plot`, but `smooth`, rounds of a moving mean in place of those of the look, 0 for none;
            and `seeds`, how they are shown in place of what the look asks for.
    """
    drawing, values = current(), smoothed(values, over, look.pop("smooth", None))
    values = values.transpose(*(name for name in (across, over) if name in values.dims))
    table = np.atleast_2d(values.values.astype(float))
    table = table[~np.isnan(table).all(1)] if np.isfinite(table).any() else table[:0]
    if not len(table):
        return
    some = ~np.isnan(table).all(0)
    x, table = values[over].values[some], table[:, some]
    if across == "seed":
        remark_gaps(table)
    log = log and bool((table[np.isfinite(table)] > 0).all())
    kind = _kind(drawing, len(table), across, look.pop("seeds", ""))
    middle, low, high = _summary(table, kind, log)
    style.name_axes(ax, integers=5 if over.endswith("round") else None)
    look = {"marker": "o", "markersize": 3, **look} if len(x) == 1 else look
    (line,) = ax.plot(x, middle, **look)
    MOVING[line] = str(values.attrs.get("moving", "moving mean" * str(values.name).endswith("_smooth")))
    if kind == "lines":
        dash = look.get("linestyle") or "-"
        ax.plot(x, table.T, color=line.get_color(), ls=dash, lw=0.5, alpha=0.45, zorder=line.get_zorder() - 0.2)
    elif kind:
        if "accuracy" in str(values.name) and np.nanmax(table) <= 1 < np.nanmax(high):
            high = np.minimum(high, 1)
            drawing.remark("intervals end at accuracy 1")
        if isinstance(some := look.get("markevery"), slice):
            reach = np.stack([middle - low, high - middle])[:, some]
            ax.errorbar(x[some], middle[some], reach, fmt="none", ecolor=line.get_color(), elinewidth=0.7, capsize=1.5)
        else:
            ax.fill_between(x, low, high, color=line.get_color(), alpha=0.18, linewidth=0)
    if kind and across == "seed":
        counts = (~np.isnan(table)).sum(0) if kind != "lines" else np.array([len(table)])
        drawing.remark(_TEXTS[kind].format(count=" to ".join(map(str, dict.fromkeys((counts.min(), counts.max()))))))
        if log:
            drawing.remark("geometric on a logarithmic axis")


def smoothed(values: xr.DataArray, over: str = "round", rounds: int | None = None) -> xr.DataArray:
    """The centred moving mean of values over rounds that the look asks for, or one of so many rounds; 0 for none."""
    if not over.endswith("round") or not (rounds := current().take("smooth") if rounds is None else rounds):
        return values
    every = values.reindex({over: np.arange(int(values[over][0]), int(values[over][-1]) + 1)})
    if rounds > every.sizes[over]:
        raise ValueError(f"smooth is {rounds}, and a line has {every.sizes[over]} rounds; give at most as many.")
    current().remark(moving := f"moving mean of {rounds} rounds")
    means = every.rolling({over: rounds}, center=True, min_periods=1).mean().where(values.notnull())
    return means.assign_attrs(moving=moving)


def remark_gaps(table: np.ndarray) -> None:
    """Remark in legend and caption that seeds (seeds, places) are infinite, or lack a value that others have."""
    some = table[:, ~np.isnan(table).all(0)]
    if not np.isfinite(some).all():
        current().remark("gaps: a seed is infinite" if np.isinf(some).any() else "some seeds lack a value")


def seeds_at(values: np.ndarray, x: float, ax: Axes, *, log: bool = False) -> None:
    """What varies over the seeds at one place: a dot per seed below five, from five on the 95 % t interval of the mean.

    Args:
        values, x, log: One number per seed, NaN left out; horizontal place; whether the interval is geometric.
    """
    drawing, values = current(), values[~np.isnan(values)]
    remark_gaps(values[:, None])
    kind = _kind(drawing, len(values), "seed")
    if kind == "lines":
        ax.plot(np.full(len(values), x), values, ".", color="black", markersize=3, zorder=4)
        drawing.remark(f"dots: each of {len(values)} seeds")
    elif kind:
        middle, low, high = (float(end[0]) for end in _summary(values[:, None], kind, log=log))
        ax.errorbar(x, middle, [[middle - low], [high - middle]], fmt="none", ecolor="black", elinewidth=0.8, zorder=4)
        drawing.remark(_TEXTS[kind].format(count=len(values)))
        if log:
            drawing.remark("geometric on a logarithmic axis")


_TEXTS = {
    "lines": "thin lines: {count} seeds, thick: their mean",
    "band": "mean and standard deviation of {count} seeds",
    "interval": f"mean and {INTERVAL} of {{count}} seeds",
}


def _kind(drawing: Drawing, count: int, across: str, asked: str = "") -> str:
    """How several values are shown; empty for one."""
    if count < 2:
        return ""
    usual = "lines" if count < FEW_SEEDS else "interval"
    return str(asked or drawing.take("seeds") or usual) if across == "seed" else "band"


def _summary(table: np.ndarray, kind: str, log: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of every column and the ends of its band; geometric if `log`."""
    values = np.log(table) if log else table
    middle, low, high = t_interval(values)
    if kind != "interval":
        count = (~np.isnan(values)).sum(0)
        with np.errstate(invalid="ignore"):  # of infinite values
            squares = np.where(np.isnan(values), 0.0, (values - middle) ** 2).sum(0)
        reach = np.sqrt(np.divide(squares, count - 1, out=np.zeros_like(squares), where=count > 1))
        low, high = middle - reach, middle + reach
    return (np.exp(middle), np.exp(low), np.exp(high)) if log else (middle, low, high)


def band(ds: xr.Dataset) -> str | None:
    """What was drawn of the seeds, for a legend; None where no line has several seeds."""
    drawing = current()
    if (notes := drawing.noted()) or drawing.going_on:
        return notes or None
    several = [values for values in ds.data_vars.values() if "seed" in values.dims]
    counts = [values.notnull().any(set(values.dims) - {"seed", "algorithm"}).sum("seed").max() for values in several]
    seeds = int(max(counts, default=1))
    return _TEXTS["lines" if seeds < FEW_SEEDS else "interval"].format(count=seeds) if seeds > 1 else None


def split_algorithms(values: xr.DataArray) -> list[tuple[str | None, xr.DataArray]]:
    """The part of each method that has values, in the order of legends; one part without name where there are none."""
    if "algorithm" not in values.coords:
        return [(None, values)]
    if "algorithm" not in values.dims:
        return [(str(values.algorithm.item()), values)]
    pairs = [(name, values.sel(algorithm=name)) for name in style.order(map(str, values.algorithm.values))]
    return [(name, series) for name, series in pairs if bool(series.notnull().any())]


def mean(values: xr.DataArray, over: str) -> xr.DataArray:
    """Mean without missing values; the values themselves where the dimension is absent."""
    return values.mean(over) if over in values.dims else values


def require_values(values: xr.DataArray) -> xr.DataArray:
    """The values; a variable without any is refused.

    Raises:
        LookupError: If there is no finite value.
    """
    if not np.isfinite(values.values).any():
        recorded = values.attrs.get("recorded")
        named = f" Recorded: {recorded}. If one of them is it, --set metrics.{values.name}=NAME says so."
        raise LookupError(
            f"{values.name} has no values; all {values.size} are missing.{named if recorded is not None else ''}"
        )
    return values

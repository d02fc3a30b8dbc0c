"""Curves with bands over seeds: any variable over rounds, one line per method."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from figures import style


def curve(
    ds: xr.Dataset,
    *,
    ax: Axes | None = None,
    variable: str = "accuracy",
    over: str = "round",
    log: bool = False,
    names: bool = True,
    **look: Any,
) -> Axes:
    """A variable over rounds (or another dimension): one line per method, the mean of the seeds, in a band of one std.

    Args:
        ax: Axes to draw into; the current ones of pyplot by default.
        variable: Variable of `ds` to draw.
        ds: The variable over `over`, and perhaps `algorithm` and `seed`.
        over: Dimension along the horizontal axis.
        log: Logarithmic vertical axis.
        names: Methods appear in the legend.
        look: Passed to `Axes.plot`; goes to every line.

    Raises:
        LookupError: If the variable has no values.
    """
    values = require_values(ds[variable])
    ax = style.axes(ax)
    for name, part in split_algorithms(values):
        colour = {} if name is None else {"color": style.colour(name)}
        shown = {"label": style.label(name)} if names and name is not None else {}
        line_with_band(part, ax=ax, over=over, **{**colour, **shown, **look})
    if log:
        style.logarithmic(ax)
    if over.endswith("round"):
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return style.name_axes(ax, style.text(ds[over]), style.text(values))


def line_with_band(values: xr.DataArray, *, ax: Axes, over: str, across: str = "seed", **look: Any) -> None:
    """The mean line of values over the dimension `across`, in a band of one standard deviation.

    Points without a value are left out and the line goes on; a single value is shown as a dot.
    """
    middle, spread = mean(values, across), deviation(values, across)
    finite = np.isfinite(middle.values)
    if not finite.any():
        return
    x, y = values[over].values[finite], middle.values[finite]
    if len(x) == 1:
        look = {"marker": "o", "markersize": 3, **look}
    (line,) = ax.plot(x, y, **look)
    if spread is not None:
        low, high = y - spread.values[finite], y + spread.values[finite]
        if (y > 0).all():  # a band that crosses zero has no place on a logarithmic axis
            low = np.maximum(low, y * 0.05)
        ax.fill_between(x, low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def band(ds: xr.Dataset) -> str | None:
    """What the bands are, for a legend; None where there is one seed."""
    seeds = ds.sizes.get("seed", 1)
    return f"mean and standard deviation of {seeds} seeds" if seeds > 1 else None


def split_algorithms(values: xr.DataArray) -> list[tuple[str | None, xr.DataArray]]:
    """The part of each method that has values, in the order of legends; one part without name where there are none."""
    if "algorithm" not in values.coords:
        return [(None, values)]
    if "algorithm" not in values.dims:
        return [(str(values.algorithm.item()), values)]
    parts = [(name, values.sel(algorithm=name)) for name in style.order(map(str, values.algorithm.values))]
    return [(name, part) for name, part in parts if bool(part.notnull().any())]


def method_look(name: str | None) -> dict[str, Any]:
    """Colour and label of a method's lines or bars; none without a method."""
    return {} if name is None else {"color": style.colour(name), "label": style.label(name)}


def mean(values: xr.DataArray, over: str) -> xr.DataArray:
    """Mean without missing values; the values themselves where the dimension is absent."""
    return values.mean(over) if over in values.dims else values


def deviation(values: xr.DataArray, over: str) -> xr.DataArray | None:
    """Standard deviation (n - 1), NaN replaced by 0 where there is one value; None where the dimension is shorter."""
    if values.sizes.get(over, 1) < 2:
        return None
    count = values.count(over)
    squares = ((values - values.mean(over)) ** 2).sum(over)
    return ((squares / (count - 1).where(count > 1)) ** 0.5).fillna(0)


def require_values(values: xr.DataArray) -> xr.DataArray:
    """The values; a variable without any is refused.

    Raises:
        LookupError: If there is no finite value.
    """
    if not np.isfinite(values.values).any():
        raise LookupError(f"{values.name} has no values; all {values.size} are missing.")
    return values

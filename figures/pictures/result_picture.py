"""The usual picture of a result, by its dimensions: what `.plot()` and `.plotly()` on a dataset draw."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures.axes import matrices, spectra, surfaces
from figures.axes.curves import mark_level, require_values
from figures.axes.fit import fit
from figures.axes.map_heights import fit_heights
from figures.axes.surfaces import contour, profile
from figures.axes.triangles import triangle
from figures.interactive.look import axis, blank
from figures.interactive.matrix import heat_map
from figures.interactive.surfaces import surface3d
from figures.looks import palette, style
from figures.pictures import density_picture

USUAL = ("loss", "accuracy", "density", "eigenvalue", "barrier", "count")
"""Variables that a picture shows by default, the first of which counts; else the first that is not constant."""

NAMES = ("client", "class", "layer", "model", "variant")
"""Dimensions whose entries have no order: dots, which no line joins."""

LINES = 6  # in one picture; more entries are the rows of a table of colours


@style.styled
def plot(ds: xr.Dataset, *, ax: Axes | None = None, variable: str | None = None, **look: Any) -> Axes:
    """A map of a plane, a profile of a line, a spectrum, a matrix of pairs, or a curve; labelled, with its colour bar.

    Args:
        ds: A result of landscape or drift.
        ax: Axes to draw into; by default those of a new figure of pyplot.
        variable: Variable to draw; by default the loss, or the first that is not constant.
        look: Passed to the drawing function of this kind of result.

    Raises:
        ValueError: If the variable is absent or has no usual picture.
        LookupError: If it has no values.
    """
    values = _values(ds, variable)
    name, dims = str(values.name), tuple(map(str, values.dims))
    alone = ax is None
    ax = _new_axes() if ax is None else ax
    if name == "density":
        return density_picture.plot(ds, ax, look)
    if (pairs := _is_pairs(dims)) or (_is_table(values) and not _is_map(ds, dims)):
        low, high = _ends(values)
        colours = {"cmap": style.SIGNED if low < 0 else style.sequential(), "aspect": "equal" if pairs else "auto"}
        table = values.transpose(..., dims[0] if pairs else _along(values))
        matrices.matrix(table, ax=ax, low=low, high=high, **{**colours, **look})
        return style.name_axes(ax, "", "") if pairs and "mark" in dims else ax  # names of models say what they are
    if len(dims) == 2 and {"by size", "mean"} <= set(map(str, ds.coords.get("mark", xr.DataArray([])).values)):
        triangle(ds, ax=ax, variable=name, **look)
        return ax
    if _is_map(ds, dims):
        many = ds.sizes.get("mark", 0) > 4
        contour(ds, ax=ax, variable=name, **{"marks": not many, **look})
        if many:
            surfaces.path(ds, dims, ax, named=False)
            ax.set_aspect("auto")  # a path is often much longer than wide
        elif alone and isinstance(ax.figure, Figure):
            fit_heights(ax.figure, [ax])
            fit(ax.figure, ax.figure.axes)
            fit_heights(ax.figure, [ax], again=True)
        return ax
    if dims == ("t",):
        return _line(ds, profile(ds, ax=ax, variable=name, **look), name)
    if dims == ("rank",):
        lost = int((~ds["converged"]).sum()) if "converged" in ds else 0
        return _spectrum(values, ax, look, lost)
    if dims == ("layer",) and name == "eigenvalue":
        return spectra.layers(ds, ax=ax, **look)
    return _curve(values, ax, look)


def plotly(ds: xr.Dataset, *, variable: str | None = None, **look: Any) -> go.Figure:
    """The same, interactive: a plane as a surface in three dimensions, pairs as a heat map, all else as curves.

    Args:
        ds: A result of landscape or drift.
        variable: Variable to draw; by default the loss, or the first that is not constant.
        look: Passed to the layout of the figure.

    Raises:
        ValueError: If the variable is absent or has no usual picture.
        LookupError: If it has no values.
    """
    values = _values(ds, variable)
    name, dims = str(values.name), tuple(map(str, values.dims))
    if _is_map(ds, dims):
        return surface3d(ds, name).update_layout(**look)
    figure = blank(**{"height": None, "template": "plotly_white", **look})
    if name == "density":
        return density_picture.plotly(ds, figure)
    if (pairs := _is_pairs(dims)) or _is_table(values):
        return heat_map(figure, values.transpose(..., dims[0] if pairs else _along(values)), _ends(values), pairs=pairs)
    over = _over(values)
    figure.update_layout(colorway=_colours(values, over))
    marker = "markers" if over in ("rank", *NAMES) else "lines+markers"
    for label, series in _series(values, over):
        figure.add_scatter(x=values[over].values, y=series, mode=marker, name=label, showlegend=label != "")
    if over in NAMES:
        figure.update_xaxes(type="category")
    return figure.update_layout(xaxis_title=axis(values[over]), yaxis_title=axis(values))


def _values(ds: xr.Dataset, variable: str | None) -> xr.DataArray:
    """The variable that is shown."""
    names = [str(name) for name, values in ds.data_vars.items() if values.ndim and not str(name).startswith("mark_")]
    numbers = [name for name in names if np.issubdtype(ds[name].dtype, np.number)]
    if variable is not None and variable not in numbers:
        raise ValueError(f"no variable {variable!r} that can be drawn; this result has {', '.join(numbers) or 'none'}.")
    if not numbers:
        single = ", ".join(f"{name} = {float(values):.4g}" for name, values in ds.data_vars.items() if not values.ndim)
        raise ValueError(f"this result has no variable with a dimension, so no picture: {single or 'it is empty'}.")
    ones = {name: [dim for dim in ds[name].dims if ds.sizes[dim] == 1] for name in numbers}
    flat = {name: ds[name].squeeze(ones[name][: ds[name].ndim - 1]) for name in numbers}  # one dimension stays
    usual = (name for name in USUAL if name in flat and flat[name].ndim <= 2)
    changing = (name for name in numbers if np.ptp(np.nan_to_num(flat[name])) > 0)
    return require_values(flat[variable or next(usual, next(changing, numbers[0]))])


def _is_map(ds: xr.Dataset, dims: tuple[str, ...]) -> bool:
    return len(dims) == 2 and (dims == ("alpha", "beta") or all(f"mark_{name}" in ds for name in dims))


def _is_pairs(dims: tuple[str, ...]) -> bool:
    """Whether a variable is over pairs of one kind of things."""
    return len(dims) == 2 and f"{dims[0]}_other" == dims[1]


def _is_table(values: xr.DataArray) -> bool:
    """Whether its picture is rows and columns of colours: of names by names, or of many entries over rounds."""
    if values.ndim != 2:
        return False
    over = _along(values)
    ordered = over not in NAMES and np.issubdtype(values[over].dtype, np.number)
    return values.size > LINES * values.sizes[over] or not ordered


def _ends(values: xr.DataArray) -> tuple[float, float]:
    """Numbers at the ends of the colours of a matrix: on both sides of 0 where values are."""
    reach = float(abs(values).max()) or 1.0
    return (-reach if float(values.min()) < 0 else 0.0), reach


def _new_axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(4.4, 3.4), layout="constrained")[1]


def _line(ds: xr.Dataset, ax: Axes, name: str) -> Axes:
    """Names of the two models at t = 0 and 1."""
    names = dict(zip(ds["mark_t"].values.tolist(), map(str, ds["mark"].values), strict=True)) if "mark_t" in ds else {}
    if {0.0, 1.0} <= set(names):
        surfaces.ends(ax, names[0.0], names[1.0])
    if f"aligned_{name}" in ds:
        ax.plot(ds["t"], ds[f"aligned_{name}"], linestyle="--", label="aligned")
        ax.legend()
    return ax


def _spectrum(values: xr.DataArray, ax: Axes, look: dict[str, Any], lost: int) -> Axes:
    """Eigenvalues by rank, as dots on stems from 0; `lost` of them leave gaps."""
    ax.vlines(values["rank"], 0, values, color=style.CLIENT, linewidth=1.2)
    ax.plot(values["rank"], values, **{"marker": "o", "linestyle": "", "color": style.GLOBAL, "markersize": 4, **look})
    mark_level(ax)
    ax.set_xticks(values["rank"])
    ax.set_xlabel(f"rank ({spectra.UNCONVERGED})" if lost else "rank")
    ax.set_ylabel(style.text(values))
    return ax


def _curve(values: xr.DataArray, ax: Axes, look: dict[str, Any]) -> Axes:
    """The variable over its main dimension, a line per entry of the other; a dot where no line leads to a value."""
    over = _over(values)
    if values.ndim == 2:
        ax.set_prop_cycle(color=_colours(values, over))
    for label, series in _series(values, over):
        around = np.pad(np.isfinite(series.astype(float)), 1)
        alone = np.flatnonzero(around[1:-1] & ~around[:-2] & ~around[2:]).tolist()
        dots = {"marker": "o", "markersize": 3, "markevery": alone} if alone else {}
        dots = {"marker": "o", "linestyle": ""} if over in NAMES else dots
        positions = np.arange(len(series)) if over in NAMES else values[over]
        ax.plot(positions, series, **{"label": label or None, **dots, **look})
    if over in NAMES:
        matrices.name_ticks(ax.xaxis, [style.literal(entry) for entry in values[over].values])
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    ax.set_xlabel(style.text(values[over]))
    ax.set_ylabel(style.text(values))
    return ax


def _along(values: xr.DataArray) -> str:
    """The dimension along the horizontal axis; of `value` and `round` the longer one."""
    dims = tuple(map(str, values.dims))
    first = max(("value", "round"), key=lambda name: values.sizes.get(name, 0))
    return next((name for name in (first, "round", "step", "t", "rank") if name in dims), dims[-1])


def _colours(values: xr.DataArray, over: str) -> list[str]:
    """Colours of lines: from dark to light for entries in a sequence, such as rounds; apart for names."""
    ordered = [name for name in values.dims if name not in (over, *NAMES)]
    return [to_hex(step) for step in style.steps(values.sizes[ordered[0]])] if ordered else list(palette.CLASSES)


def _over(values: xr.DataArray) -> str:
    """The dimension that lines run over.

    Raises:
        ValueError: If there are more than two.
    """
    if values.ndim > 2:
        raise ValueError(
            f"{values.name} has the dimensions {', '.join(map(str, values.dims))}, for which there is no usual "
            "picture; select some, or draw a named figure (`fedscape figures list`)."
        )
    return _along(values)


def _series(values: xr.DataArray, over: str) -> list[tuple[str, np.ndarray]]:
    """A name and the values over the main dimension of each entry of the other dimension, without name if none."""
    others = [str(name) for name in values.dims if name != over]
    if not others:
        return [("", values.values)]
    entries = values[others[0]]
    what = entries.attrs.get("long_name", others[0])
    return [(f"{what} {entry}", values.sel({others[0]: entry}).values) for entry in entries.values]

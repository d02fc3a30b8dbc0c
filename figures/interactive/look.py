"""Shared parts of interactive figures: an empty figure, names of axes, small arrays, logarithmic colour bars."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.looks import words

axis = words.text
"""Axis label of a variable."""

COLOURS = "Viridis"
"""Colour map of one-sided data, as in `figures.looks.style`."""


def blank(*, height: int = 380, **layout: Any) -> go.Figure:
    """An empty figure; the page or notebook that shows it decides its style."""
    margin = {"l": 60, "r": 16, "t": 16, "b": 48}
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "xanchor": "left", "itemsizing": "constant"}
    base = {"height": height, "margin": margin, "legend": legend, "hovermode": "closest", "uirevision": "kept"}
    return go.Figure(layout=base | layout)


def direction(ds: xr.Dataset, name: str) -> str:
    """The direction of a coordinate: u and v of a plane through models, a principal component of a trajectory."""
    index = ("alpha", "beta").index(name) if name in ("alpha", "beta") else None
    if index is not None and "explained_alpha" in ds.attrs:
        return f"component {index + 1}"
    return name if index is None or "collinear" not in ds.attrs else "uv"[index]


def round_axis(rounds: Any) -> dict[str, Any]:
    """A horizontal axis of rounds; of few rounds each one is labelled, and nothing between them."""
    span = np.ptp(np.asarray(rounds, float)) if len(rounds) else 0.0
    return {"title": "round", **({"dtick": 1} if span <= 8 else {})}


def small(values: Any) -> np.ndarray:
    """Numbers in few bytes: whole ones in 16 bits where they fit, others in 32 unless they are too large for that."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        fits = array.size == 0 or (array.min() >= -(2**15) and array.max() < 2**15)
        return array.astype(np.int16 if fits else np.int32)
    fits = not (np.abs(array[np.isfinite(array)]) > np.finfo(np.float32).max).any()
    return array.astype(np.float32 if fits else np.float64)


def grid(ds: xr.Dataset, variable: str) -> tuple[xr.DataArray, xr.DataArray, np.ndarray]:
    """Both coordinates of a map, and its values with the second one along rows, as plotly takes them."""
    first, second = map(str, ds[variable].dims)
    return ds[first], ds[second], ds[variable].transpose(second, first).values


def mark_names(ds: xr.Dataset) -> list[str]:
    """Names of the models on a map."""
    return [str(name) for name in ds["mark"].values]


def log10(values: np.ndarray) -> np.ndarray:
    """Decimal logarithm; NaN where a value is not positive."""
    return np.log10(np.where(values > 0, values, np.nan))


def log_axis(*values: np.ndarray) -> dict[str, Any]:
    """A logarithmic axis for these numbers, labelled as `figures.looks.style.logarithmic` does it."""
    flat = np.concatenate([np.ravel(array) for array in values]).astype(float) if values else np.zeros(0)
    flat = flat[np.isfinite(flat) & (flat > 0)]
    low, high = (flat.min(), flat.max()) if len(flat) else (1.0, 1.0)
    if words.PLAIN[0] < low and high < words.PLAIN[1]:
        return {"type": "log", "tickformat": "~g"}
    powers = {"type": "log", "exponentformat": "power"}
    if not 6 < high / low < 100:  # plotly labels a shorter axis in full
        return powers | ({"dtick": 1} if high > low * 6 else {})
    ticks = nice(low, high)
    times = "\N{MULTIPLICATION SIGN}10<sup>"
    texts = [times.join(str(int(number)) for number in f"{tick:.0e}".split("e")) for tick in ticks]
    texts = [f"{text}</sup>".removeprefix(f"1{times[0]}").replace("-", "\N{MINUS SIGN}") for text in texts]
    return powers | {"tickvals": ticks, "ticktext": texts}


def colour_bar(title: str, low: float, high: float, *, log: bool) -> dict[str, Any]:
    """Colour bar; for logarithms from `low` to `high` its ticks are written as the values themselves."""
    bar: dict[str, Any] = {"title": {"text": title}, "thickness": 12, "outlinewidth": 0, "len": 0.85}
    if log:
        ticks = nice(10**low, 10**high)
        bar |= {"tickvals": np.log10(ticks).tolist(), "ticktext": [f"{tick:.3g}" for tick in ticks]}
    return bar


def nice(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, four or more; evenly spaced ones where the range is narrow."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            return ticks
    return np.geomspace(low, high, 5).tolist()

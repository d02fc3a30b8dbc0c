"""The usual picture of a spectral density: the bulk as a line, single eigenvalues outside it as stems, per round."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from figures.axes import spectra
from figures.interactive.look import axis, log_axis
from figures.looks import style


def plot(ds: xr.Dataset, ax: Axes, look: dict[str, Any]) -> Axes:
    """The densities in one panel, whose logarithmic axis ends at `spectra.FLOOR` of the highest peak."""
    for label, colour, spectrum in _rounds(ds):
        spectra.density(spectrum, ax=ax, **{"color": colour, "label": label or None, **look})
    ax.set_ylim(spectra.FLOOR * float(ds.density.max()), 2 * float(ds.density.max()))
    if "round" in ds.dims:
        ax.legend()
    ax.set_xlabel(style.text(spectra.grid(ds)))
    return ax


def plotly(ds: xr.Dataset, figure: go.Figure) -> go.Figure:
    """The same, into an interactive figure."""
    low, high = np.log10(float(ds.density.max()) * np.array([spectra.FLOOR, 2]))
    for label, colour, spectrum in _rounds(ds):
        line: dict[str, Any] = {"mode": "lines", "line_color": colour, "legendgroup": label}
        bulk = spectrum["bulk" if "bulk" in spectrum else "density"]
        figure.add_scatter(x=spectra.grid(spectrum).values, y=bulk, name=label, showlegend=label != "", **line)
        places, heights = spectra.outliers(spectrum)
        if len(places):
            ends = np.stack([np.full(len(places), 10**low), heights, np.full(len(places), np.nan)], 1)
            line |= {"name": "single eigenvalue", "showlegend": False}
            figure.add_scatter(x=np.repeat(places, 3), y=ends.ravel(), **line)
    figure.update_yaxes(log_axis(10.0 ** np.array([low, high])), range=(low, high), title=axis(ds.density))
    return figure.update_xaxes(title=axis(spectra.grid(ds)))


def _rounds(ds: xr.Dataset) -> list[tuple[str, str, xr.Dataset]]:
    """Name, colour and density of each round of a result, or of its only one without a name."""
    if "round" not in ds.dims:
        return [("", style.GLOBAL, ds)]
    steps = zip(ds["round"].values, style.steps(ds.sizes["round"]), strict=True)
    return [(f"round {index}", to_hex(step), ds.sel(round=index)) for index, step in steps]

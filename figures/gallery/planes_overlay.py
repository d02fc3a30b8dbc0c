"""Basins of three clients' own data over the global loss, early and late (planes of the IMA paper, section 3.2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drift.analyses.landscapes.data_planes import overlay_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _planes, _selected, _stack
from figures.looks import palette, style

NEEDS = "one run with three or more clients per round, that kept the clients of some rounds"

COST = "a minute per run"

COLOURS = ("#A03A00", "#004C8C", "#8A1E60")
"""Of the three clients: dark, so that their lines stand out of the map in grey print too, where dashes differ."""


@_selected.one_run
def data(run: Run, *, rounds: Sequence[int] | None = None, points: int = 21) -> xr.Dataset:
    """loss and client_loss (nats) over panel, alpha, beta (and client, by position in the panel).

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: Rounds shown; by default an early one and the last one that kept its clients.
        points: Grid points per axis.
    """
    indices = _planes.early_and_last(run, rounds)
    clients = {index: _planes.largest_triangle(run, index) for index in indices}
    return _stack.join_panels(
        (f"round {index}", run.cached(overlay_plane, round=index, points=points, clients=clients[index]))
        for index in indices
    )


_MEAN = "mean of their models (triangles)"


def draw(ds: xr.Dataset) -> Figure:
    """The global loss in light grey; in each client's colour, where its own loss is in the lowest tenth and quarter."""
    planes = _stack.panels(ds)
    levels = surfaces.common_levels(*[plane.loss for plane in planes])
    shapes = [float(np.ptp(plane.alpha.values) / np.ptp(plane.beta.values)) for plane in planes]
    tall = min((style.WIDE - 1.6) / sum(shapes), 3.2)
    figure, axs = style.panels(1, len(planes), height=tall + 1.1, width_ratios=shapes, cell=0.75 / min(shapes))
    for ax, plane in zip(axs[0], planes, strict=True):
        surfaces.contour(plane, ax=ax, levels=levels, marks=False, cmap=_PALE)
        for index, (colour, dash) in enumerate(zip(COLOURS, palette.DASHES, strict=False)):
            _basin(plane, plane.client_loss.isel(client=index), colour, dash, ax)
            _mark(plane, index, "^", colour, ax)
        _mark(plane, plane.sizes["client"], "X", "white", ax)
        names = ", ".join(map(str, plane.client.values))
        ax.set_title(f"{plane.attrs['label']}: clients {names}", fontsize=style.small())
    style.name_edges(axs)
    named = [
        Line2D([], [], color=colour, linestyle=dash, marker="^", markeredgecolor="white", label=f"{which} client")
        for which, colour, dash in zip(_WHICH, COLOURS, palette.DASHES, strict=False)
    ]
    lowest = "tenth of the map where its own loss is lowest"
    overlaid = [
        Line2D([], [], color="white", marker="X", markeredgecolor="black", linewidth=0, label=_MEAN),
        Line2D([], [], color="black", linewidth=WIDTHS[0], label=f"thick: {lowest}"),
        Line2D([], [], color="black", linewidth=WIDTHS[1], label=f"thin: {lowest.replace('tenth', 'quarter')}"),
    ]
    style.key(figure, axs.flat, handles=[*named, *overlaid])
    surfaces.colorbar(figure, axs[0], levels, f"global {style.text(ds.loss)}", cmap=_PALE)
    return figure


LOWEST = (0.1, 0.25)
"""Parts of the plane that are outlined as a client's basin."""

WIDTHS = (1.9, 0.8)
"""Widths of their lines, points."""

_WHICH = ("first", "second", "third")

_PALE = LinearSegmentedColormap.from_list("pale", ["#b2b2b2", "#ffffff"])
"""As in other planes, dark is a low loss; light enough for lines on it."""


def _basin(plane: xr.Dataset, loss: xr.DataArray, colour: str, dash: Any, ax: Axes) -> None:
    """Outline the parts of the plane where a client's own loss is lowest; shade alone is the global loss."""
    grid = plane.alpha.values, plane.beta.values, loss.transpose("beta", "alpha").values
    finite = loss.values[np.isfinite(loss.values)]
    if np.ptp(finite) == 0:
        raise LookupError(f"the loss of a client is {finite[0]:.3g} on the whole plane; it has no basin to outline.")
    inner, outer = np.quantile(finite, LOWEST)
    ax.contour(*grid, levels=np.unique([inner, outer]), colors=[colour], linewidths=WIDTHS, linestyles=[dash])


def _mark(plane: xr.Dataset, index: int, marker: str, colour: str, ax: Axes) -> None:
    x, y = float(plane.mark_alpha[index]), float(plane.mark_beta[index])
    look: dict[str, Any] = {
        "markeredgecolor": "black" if marker == "X" else "white",
        "markeredgewidth": 0.6,
        "markersize": 6.5,
    }
    ax.plot(x, y, marker, color=colour, zorder=5, **look)

"""Error of each class on the plane through three clients of one round (a plane as in IMA paper, Fig. 1)."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drift.analyses.landscapes.models_plane import models_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _planes, _selected
from figures.looks import style

NEEDS = "one run with three or more clients per round, that kept the clients of some round"

COST = "seconds per run"


@_selected.one_run
def data(run: Run, *, round: int | None = None, points: int = 21, most: int = 10) -> xr.Dataset:
    """class_error (fraction) over alpha, beta and class, and which of the three clients hold a class: holds.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one that kept its clients.
        points: Grid points per axis.
        most: Classes shown, the first ones.
    """
    triangle = _planes.of_round(run, round)
    clients = triangle["clients"]
    _ = run.dataset.class_names  # refuses data without classes
    models = [f"client {client}" for client in clients]
    ds = run.cached(models_plane, round=triangle["round"], models=models, points=points).isel({"class": slice(most)})
    shown = range(ds.sizes["class"])
    holds = np.array([np.isin(shown, run.labels[run.parts[client]]) for client in clients], dtype=float)
    targets = run.task.labels("test").numpy()
    counts = np.array([(targets == label).sum() for label in shown])
    ds["class_samples"] = ("class", counts, {"long_name": "test samples of the class", "units": "samples"})
    ds["holds"] = (("client", "class"), holds, {"long_name": "client holds samples of the class", "units": "1"})
    return ds.assign_coords(client=clients).assign_attrs(variable="class_error")


def draw(ds: xr.Dataset) -> Figure:
    """A map per class; the clients that hold samples of it are black, the others white."""
    count = ds.sizes["class"]
    columns = min(2 if style.is_narrow() else 5, count)
    rows = -(-count // columns)
    shape = float(np.ptp(ds.beta.values) / np.ptp(ds.alpha.values))
    tall = (style.width() - 1.2) / columns * shape
    figure, axs = style.panels(
        rows, columns, height=rows * (tall + 0.25) + 0.85, stacked=columns, cell=0.62 * shape, sharex=True, sharey=True
    )
    levels = np.linspace(0, 1, 11)
    for index, ax in zip(range(count), axs.flat, strict=False):
        plane = ds.isel({"class": index})
        surfaces.contour(plane, ax=ax, variable="class_error", levels=levels, marks=False)
        for client in range(3):
            is_holder = bool(plane.holds[client])
            look: dict[str, Any] = {"color": "black" if is_holder else "white", "markeredgecolor": "black"}
            look["label"] = "client that holds the class" if is_holder else "client without it"
            ax.plot(float(ds.mark_alpha[client]), float(ds.mark_beta[client]), "^", markersize=5, linestyle="", **look)
        if style.is_narrow():
            ax.xaxis.set_major_locator(MaxNLocator(3, prune="both"))
        ax.set_title(f"class {style.literal(plane['class'].item())}", fontsize=style.small())
    style.name_edges(axs, count)
    style.key(figure, axs.flat)
    surfaces.colorbar(figure, axs.flat, levels, "error of the class")
    return figure

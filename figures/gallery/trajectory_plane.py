"""The path of the global model on the plane of its first two principal components (paper of Li et al. 2018, Sec. 7)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _runs, _selected
from figures.looks import style

NEEDS = "one run that kept the global models of two rounds or more"

COST = "seconds per run"


@_selected.one_run
def data(run: Run, *, points: int = 21, rounds: Sequence[int] | None = None, clients: bool = True) -> xr.Dataset:
    """loss (nats) and error (fraction) over alpha and beta, and the global models as marks with their distance.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        points: Grid points per axis.
        rounds: Whose global models; at most 20 by default, evenly spread.
        clients: Whether the clients of rounds that kept them are drawn as well.
    """
    if len(run.kept("globals")) < 3:
        few = f"run {run.name} kept {len(run.kept('globals'))} global models, a plane takes three"
        raise _runs.missing(few, _runs.KEEP_GLOBALS)
    options = {} if rounds is None else {"rounds": list(rounds)}
    with_clients = clients and bool(set(run.kept("clients")) & set(rounds or run.kept("globals")))
    return run.cached(trajectory_plane, points=points, clients=with_clients, **options)


def draw(ds: xr.Dataset) -> Figure:
    """The map of the loss with the path drawn in; below it, how far the models lie off the plane."""
    figure, axs = style.panels(2, 1, height=3.6 if style.is_narrow() else 4.8, height_ratios=(1.9, 1))
    row = axs[:, 0]
    levels = surfaces.common_levels(ds.loss)
    surfaces.contour(ds, ax=row[0], levels=levels, marks=False)
    _path(ds, row[0])
    for name, label in (("alpha", row[0].set_xlabel), ("beta", row[0].set_ylabel)):
        label(f"{surfaces.direction(ds, name)}\n({100 * ds.attrs[f'explained_{name}']:.0f} % of variance)")
    surfaces.colorbar(figure, row[:1], levels, style.text(ds.loss), below=[row[0]] if style.is_narrow() else [])
    row[1].plot(ds.mark_round, ds.distance, "o-", color=style.GLOBAL, markersize=3)
    row[1].set_ylim(bottom=0)
    style.name_axes(row[1], "round", style.text(ds.distance), integers=5)
    return style.key(figure, row)


def _path(ds: xr.Dataset, ax: Axes) -> None:
    """The projected models joined in order; the first and the last one named."""
    if "client_alpha" in ds:
        clients = ds.client_alpha.values.ravel(), ds.client_beta.values.ravel()
        ax.scatter(*clients, s=8, color="white", edgecolors="black", linewidths=0.3, zorder=2, label="client")
    surfaces.path(ds, ("alpha", "beta"), ax, label="global models, joined in the order of rounds")

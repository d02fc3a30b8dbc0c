"""A plane with batch statistics recomputed at every point, and with averaged ones (a plane as in IMA paper, Fig. 1)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _planes, _selected, _stack
from figures.looks import style

NEEDS = "one run of a model with batch normalisation, with three or more clients per round, that kept those of a round"

COST = "minutes per run"

_SHOWN = {"recomputed": "statistics recomputed at every point", "averaged": "statistics averaged like the models"}


@_selected.one_suited_run(
    lambda run: run.kept("clients") and run.task.layout.buffers,
    what="no run has a model with batch normalisation and kept clients",
    command="fedscape train digits-shards2 --set task.model=resnet8",
    why="it kept no clients or has no batch normalisation",
)
def data(run: Run, *, round: int | None = None, points: int = 15, split: str = "test") -> xr.Dataset:
    """loss (nats) and error (fraction) over panel, alpha and beta; a panel for each kind of statistics.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one that kept its clients.
        points: Grid points per axis.
        split: Samples of loss and error.
    """
    triangle = _planes.of_round(run, round)
    options = {**triangle, "points": points, "split": split}
    planes = [(text, _planes.round_plane(run, statistics=name, **options)) for name, text in _SHOWN.items()]
    return _stack.join_panels(planes).assign_attrs(round=triangle["round"])


def draw(ds: xr.Dataset) -> Figure:
    """A map for each kind of statistics, with common levels."""
    planes = _planes.short_marks(_stack.panels(ds))
    figure, axs = style.panels(1, len(planes), height=3.0, cell=0.75, sharey=True)
    levels = surfaces.common_levels(*[plane.loss for plane in planes])
    for ax, plane in zip(axs[0], planes, strict=True):
        surfaces.contour(plane, ax=ax, levels=levels)
        blank = "" if bool(plane.loss.notnull().all()) else "\n(blank: no finite loss)"
        ax.set_title(f"round {ds.attrs['round']}: {plane.attrs['label']}{blank}", fontsize=style.small())
    style.name_edges(axs)
    surfaces.colorbar(figure, axs[0], levels, style.text(ds.loss))
    return figure

"""Loss and error over all aggregation weights of three clients (FedLAW paper, Fig. 12)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.weight_simplex import weight_simplex
from drift.runs.run import Run
from figures.axes import surfaces
from figures.axes.triangles import triangle
from figures.gallery import _planes, _selected, _stack
from figures.looks import style

NEEDS = "one run with three or more clients per round, that kept the clients of some rounds"

COST = "seconds per run"


@_selected.one_run
def data(run: Run, *, rounds: Sequence[int] | None = None, step: float = 0.05) -> xr.Dataset:
    """loss (nats) and error (fraction) over panel, alpha and beta, the weights of the first two clients.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: By default an early and the last one that kept its clients.
        step: Of the weights.
    """
    indices = _planes.early_and_last(run, rounds)
    return _stack.join_panels((f"round {at}", run.cached(weight_simplex, round=at, step=step)) for at in indices)


def draw(ds: xr.Dataset) -> Figure:
    """Triangles: losses of the rounds, then errors; diamond: by size, cross: plain mean, circle: minimum."""
    panels = _stack.panels(ds)
    variables = _stack.measured(ds)
    wide, tall = style.WIDE if len(panels) > 1 else style.NARROW, 2.8 * len(variables)
    figure, rows = style.panels(len(variables), len(panels), width=wide, height=tall, stacked=2, cell=0.95)
    for row, variable in zip(rows, variables, strict=True):
        levels = surfaces.common_levels(*[panel[variable] for panel in panels], log=variable == "loss", top=1.0)
        for ax, panel in zip(row, panels, strict=True):
            triangle(panel, ax=ax, variable=variable, levels=levels)
            ax.set_title(f"{panel.attrs['label']}, {variable}", fontsize=style.small(), pad=15)
        below = list(row) if style.is_narrow() and len(panels) > 1 else ()
        surfaces.colorbar(figure, row, levels, style.text(ds[variable]), below=below)
    return style.key(figure, rows.flat)

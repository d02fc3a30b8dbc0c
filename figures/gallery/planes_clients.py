"""Planes through three clients of an early, a middle and the last round, and three globals (IMA paper, Fig. 1)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.gallery import _planes, _runs, _selected, _stack
from figures.looks import style

NEEDS = "one run with three or more clients per round, that kept the clients of some rounds and its last three models"

COST = "a minute per run"


@_selected.one_run
def data(run: Run, *, rounds: Sequence[int] | None = None, points: int = 21, folds: int = 0) -> xr.Dataset:
    """loss (nats) and error (fraction) over panel, alpha and beta, with coordinates and minimum of each panel.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: Rounds of the client planes; by default an early, a middle and the last one that kept its clients.
        points: Grid points per axis.
        folds: Parts of the samples for the sampling error, such as 20: what may be as low as the lowest point is
            hatched. By default none.
    """
    stored = _runs.rounds_with_clients(run, least=3)
    indices = _planes.early_middle_last(stored) if rounds is None else list(rounds)
    how = {"points": points} | ({"folds": folds} if folds else {})
    planes = [(f"clients of\nround {index}", _planes.widest_plane(run, index, **how)) for index in indices]
    if len(run.kept("globals")) >= 3:
        planes.append((f"last three\nglobals,\n{_planes.OWN_SCALE}", _planes.global_plane(run, **how)))
    return _stack.join_panels(planes)


def draw(ds: xr.Dataset) -> Figure:
    """A row of losses, a row of errors; levels are common to the client planes of a row, the globals have their own.

    A narrow figure has the losses alone, two maps in a row.
    """
    planes = _stack.panels(ds)
    views = [_view(plane) for plane in planes]
    shapes = [max(_CELL, float(np.divide(*np.ptp(view, axis=1)))) for view in views]
    tall = (style.WIDE - 2.6) / sum(shapes)  # panels of one height, as wide as their planes
    variables = _stack.measured(ds)[: 1 if style.is_narrow() else None]
    height = len(variables) * (tall + 0.6)
    figure, axs = style.panels(len(variables), len(planes), height=height, width_ratios=shapes, stacked=2, cell=0.8)
    wide = style.width() > _NAMED
    for row, variable in zip(axs, variables, strict=True):
        _planes.maps(
            figure, row, _planes.short_marks(planes), variable, names=variable == "loss" and wide, top=_TOP[variable]
        )
        for ax, plane, view in zip(row, planes, views, strict=True):
            ax.set(xlim=view[0], ylim=view[1])
            ax.set_title(_title(plane, wide) if variable == "loss" else "", fontsize=style.small())
            ax.set_anchor("N")  # titles stand side by side
    style.name_edges(axs)
    return _planes.key(figure, axs, "a client (last map: a global model)")


def _view(plane: xr.Dataset) -> np.ndarray:
    """Ends along u and v of what is shown: all, or what its models need of the long side of a long plane."""
    ends = np.array([plane[name].values[[0, -1]] for name in ("alpha", "beta")])
    sizes = np.ptp(ends, axis=1)
    for side, most in enumerate((_FLAT * sizes[1], sizes[0] / _TALL)):
        if sizes[side] > most:
            name = ("alpha", "beta")[side]
            marks = np.append(plane[f"mark_{name}"].values, plane[f"minimum_{name}"].values)
            marks = marks[(marks >= ends[side][0]) & (marks <= ends[side][1])]
            middle, reach = (marks.max() + marks.min()) / 2, max(most / 2, (0.58, 0.68)[side] * np.ptp(marks))
            ends[side] = np.clip([middle - reach, middle + reach], *ends[side])
    return ends


def _title(plane: xr.Dataset, named: bool) -> str:
    """What the models of a plane are; with their numbers where these are not on the map."""
    label = str(plane.attrs["label"])
    if named or not label.startswith("clients"):
        return " ".join(label.split()).replace(f", {_planes.OWN_SCALE}", f",\n{_planes.OWN_SCALE}")
    numbers = [str(name).rpartition(" ")[2] for name in plane.mark.values if str(name) != "mean"]
    return label.replace("clients", f"clients {', '.join(numbers)}", 1)


_NAMED = 6.0
"""Width in inches of a figure from which on there is room for numbers on its maps."""

_CELL = 0.95
"""Least width of the cell of a map, in heights, so that its title and the bar below have room."""

_TALL, _FLAT = 0.8, 2.5
"""Widths of a panel, in heights, between which it stays where the models allow it."""

_TOP = {"loss": 0.9, "error": 1.0}
"""Quantile at the highest level."""

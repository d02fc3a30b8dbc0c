"""Barriers between the members of a client's pool, and the loss of random averages of them (Frankle et al. 2020)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.landscapes.barriers import pool_barriers
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.axes.fit import NAME
from figures.gallery import _selected, _stack
from figures.gallery.barriers_clients import looks, matrix, shown_variables, without_barriers
from figures.looks import style

NEEDS = "one run of a method whose clients grow pools, such as lss, that kept what the clients received in some rounds"

COST = "seconds per run"


@_selected.one_suited_run(
    lambda run: run.method.pool_size and run.kept("globals"),
    usual="lss",
    what="no run grew pools of models",
    command="fedscape train digits-shards2 --set method=lss",
    why="it grew no pools of models, or kept none",
)
def data(
    run: Run, *, rounds: Sequence[int] | None = None, points: int = 11, count: int = 64, split: str = "test"
) -> xr.Dataset:
    """barrier and midpoint over panel, mark and mark_other, loss at random averages over panel and value.

    Args:
        method, seed: Whose run is shown; by default that of LSS with the smallest seed.
        rounds: By default the first and the last one that kept its global model; of the first client of each.
        points: Evaluations on each line.
        count: Random averages.
        split: Samples of the loss.
    """
    indices = evenly_spaced(run.kept("globals"), 2) if rounds is None else list(rounds)
    results = [run.cached(pool_barriers, round=index, points=points, count=count, split=split) for index in indices]
    variables = ["barrier", "midpoint", "mark_loss", "loss", "loss_mean", "loss_max"]
    titled = [(f"round {ds.attrs['round']}, client {ds.attrs['client']}", ds[variables]) for ds in results]
    return _stack.join_panels(titled).assign_attrs(split=split)


def draw(ds: xr.Dataset) -> Figure:
    """A row per round: barriers, if any, midpoints minus mean losses, and losses of members and of random averages."""
    count, variables = ds.sizes["panel"], shown_variables(ds)
    columns = len(variables) + 1
    ratios = (*[1.0] * len(variables), 0.85)
    figure, rows = style.panels(
        count, columns, height=2.15 * count + 0.3, width_ratios=ratios, stacked=2 if columns == 2 else 1, cell=0.8
    )
    all_looks = looks(ds)
    for panel, row in zip(_stack.panels(ds), rows, strict=True):
        names = [str(name).removeprefix("member ") for name in panel.mark.values]
        short = panel.assign_coords(mark=names, mark_other=names)
        for ax, variable in zip(row, variables, strict=False):
            mesh = matrix(short, variable, ax, all_looks[variable])
            style.name_axes(ax, "member", "member")
            ax.set_title(panel.attrs["label"])
            location = {"location": "bottom"} if style.is_narrow() and columns == 2 else {}
            figure.colorbar(mesh, ax=ax, label=style.text(ds[variable]), aspect=20, **location)  # type: ignore[arg-type]
        _losses(panel, row[-1])
        row[-1].set_title(f"{ds.attrs['split']} samples")
        row[-1].set_ylabel(style.with_unit(f"{ds.attrs['split']} loss", ds.loss))
    if variables == ["midpoint"]:
        figure.supxlabel(without_barriers(ds), fontsize=style.small())
    return figure


def _losses(panel: xr.Dataset, ax: Axes) -> None:
    """Dots in two columns: members, which start with the received model, and random averages; a bar at their mean."""
    members, mixed = panel.mark_loss.values, panel.loss.values
    across = np.linspace(-0.25, 0.25, len(mixed))
    ax.plot(np.zeros(len(members) - 1), members[1:], "o", color=style.CLIENT, markersize=4)
    ax.plot(0, members[0], "D", color=style.GLOBAL, markersize=4)
    note = ax.annotate("received", (0, members[0]), (0, -5), textcoords="offset points", ha="center", va="top")
    note.set(fontsize=style.small(), gid=NAME)
    ax.margins(y=0.14)
    ax.plot(1 + across, mixed, ".", color=style.steps(3)[1], markersize=3)
    ax.hlines(mixed.mean(), 0.65, 1.35, colors="black", linewidth=1.0)
    ax.set_xlim(-0.5, 1.6)
    ax.set_xticks([0, 1], ["members", "random\naverages"])
    ax.grid(False, axis="x")

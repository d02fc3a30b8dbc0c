"""Three clients in several settings: classes, the loss over their weights, the best weights (FedLAW paper, Fig. 12)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.labels import class_shares
from drift.runs.run import Run
from figures.axes import class_labels, surfaces, triangles
from figures.gallery import _runs, _stack, simplex_optima
from figures.looks import style
from figures.selection import partition_text, run_selection

NEEDS = "runs of one method with three clients in two partitions or more, that kept their clients in several rounds"

PRINTED = 10
"""Round that the paper shows."""

COST = "a minute per run"


def data(
    runs: Sequence[Run],
    *,
    method: str | None = None,
    round: int | None = None,
    rounds: int = 20,
    step: float = 0.05,
    extend: float = 0.2,
) -> xr.Dataset:
    """class_share over panel, client and class; and the data of simplex-optima, over panel.

    Args:
        method: Whose runs are shown, that of the smallest seed of each partition; by default those of FedAvg.
        round: Whose landscape is shown; by default the paper's, 10, where all runs kept it, else the middle one.
        rounds: Most rounds that the best weights are looked for in.
        step: Of the weights.
        extend: How far below 0 weights may go.

    Raises:
        LookupError: If there are no runs of three clients in two partitions.
    """
    selected: dict[str, Run] = {}
    for run in sorted(
        _runs.prefer_methods(runs, None if method is None else [method], ["fedavg"]),
        key=lambda run: run.experiment.seed,
    ):
        if run.experiment.clients.number == 3 and run.kept("clients"):
            selected.setdefault(partition_text.partition_label(run), run)
    if len(selected) < 2:
        command = "fedscape sweep fedlaw-cifar10-toy3-quick --grid clients.even=10.0,0.5"
        raise _runs.missing(f"{len(selected)} partitions have a run that kept three clients", command)
    why = "this figure shows one run of three clients per partition, that kept its clients"
    run_selection.narrow(run_selection.select_runs(runs, method), selected.values(), why)
    usual = PRINTED if all(PRINTED in run.kept("clients") for run in selected.values()) else None
    shown = usual if round is None else round
    look: dict[str, Any] = {"round": shown, "rounds": rounds, "step": step, "extend": extend}
    results = [_panel(run, simplex_optima.data([run], method=run.label, **look)) for run in selected.values()]
    joined = xr.concat(results, "panel", join="outer")
    joined = joined.assign_coords(
        {"panel": list(selected), "class": list(next(iter(selected.values())).dataset.classes)}
    )
    joined["class_share"].attrs.update(long_name="share of the class in the client's data", units="fraction")
    return _stack.name_runs(joined, list(selected.values()))


def draw(ds: xr.Dataset) -> Figure:
    """A column per partition: classes of the three clients; the landscape with the path of the best weights."""
    ds, count = ds.dropna("round", how="all", subset=["best_weight"]), ds.sizes["panel"]
    figure, axs = style.panels(2, count, height=4.7, height_ratios=(1, 1.7), turned=True, cell=0.95)
    levels = surfaces.common_levels(ds.loss)
    for index in range(count):
        panel = ds.isel(panel=index)
        class_labels.class_bars(panel, ax=axs[0, index], variable="class_share", over="client")
        axs[0, index].set_title(style.literal(panel.panel.item()), fontsize=style.small())
        axs[0, index].set_ylabel("share of classes, by number" if index == 0 else "")
        axs[0, index].set_xticks(panel.client)
        triangles.triangle(panel, ax=axs[1, index], levels=levels)
        triangles.optima(panel, ax=axs[1, index])
        axs[1, index].set_title(f"landscape of round {int(panel.shown)}", fontsize=style.small(), pad=14)
    surfaces.colorbar(figure, axs.flat, levels, style.text(ds.loss))
    path = ds["round"].values
    title = f"dots: best weights of rounds {path[0]} (dark) to {path[-1]} (pale)"
    return style.key(figure, axs[1], title=title)


def _panel(run: Run, ds: xr.Dataset) -> xr.Dataset:
    """What simplex-optima has of a run, with the class shares of its clients and the round of the landscape."""
    shares = class_shares(run)[ds.client.values]
    return ds.drop_attrs(deep=False).assign(class_share=(("client", "class"), shares), shown=ds.attrs["shown"])

"""Accuracy of the global model, of local ones, and of local ones on the worst other client (LSS paper, Fig. 6)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.model_quality import three_accuracies
from drift.runs.run import Run
from figures.axes import curves, matrices, model_quality
from figures.gallery import _runs, _stack
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the clients of a round"

COST = "seconds per run"


def data(runs: Sequence[Run], *, round: int = -1, criterion: str = "label") -> xr.Dataset:
    """Three accuracies (fractions) over algorithm and seed; ood over client and holder, of the first run.

    Args:
        round: Round that kept its clients; negative counts from the last one.
        criterion: What a client's data are: "label" (test data in its class shares) or "train".
    """
    what, why = "no run kept the clients of a round", "it kept no clients"
    selected = _runs.select_suited(
        _runs.select_comparable(runs), lambda run: run.kept("clients"), what=what, command=_runs.KEEP_CLIENTS, why=why
    )

    def compute(run: Run) -> xr.Dataset:
        return run.cached(three_accuracies, round=round, criterion=criterion)

    ds = _stack.stack_runs(selected, lambda run: compute(run)[["global_accuracy", "averaged_local", "worst_ood"]])
    shown = compute(selected[0])
    ds = ds.assign(ood=shown.ood)
    about = {"criterion": criterion, "method": selected[0].label, "round": shown.attrs["round"]}
    return ds.assign_attrs(about)


def draw(ds: xr.Dataset) -> Figure:
    """Bars a method; the matrix of one run."""
    figure, axs = style.panels(1, 2, height=2.7, width_ratios=(1.6, 1))
    names = {"global_accuracy": "global", "averaged_local": "local,\nmean", "worst_ood": "local, on the\nworst client"}
    values = ds[list(names)].to_array("mark")
    model_quality.bars(values, ax=axs[0, 0], over="mark", ticks=list(names.values()))
    style.name_axes(axs[0, 0], "models", "accuracy")
    ood = ds.ood.transpose("client", "holder").assign_attrs(long_name="accuracy")
    style.name_axes(matrices.matrix(ood, ax=axs[0, 1], high=1.0), "data of client", "model of client")
    kind = "test data, label shares" if ds.attrs["criterion"] == "label" else "training data"
    axs[0, 1].set_title(f"{style.label(ds.attrs['method'])}, round {ds.attrs['round']}: {kind}", fontsize=style.small())
    return style.key(figure, [axs[0, 0]], title=curves.band(ds))

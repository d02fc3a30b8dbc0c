"""Accuracy of global, local and worst-client models against the models that a client averages (LSS paper, Fig. 6)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drift.analyses.landscapes.model_quality import three_accuracies
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _pools, _runs
from figures.looks import style

NEEDS = "runs of a method with pools, such as lss, of two sizes or more, alike in all else, that kept clients"

COST = "seconds"

_PANELS = {
    "global_accuracy": "global model",
    "averaged_local": "local models, mean",
    "worst_ood": "local models on the worst client",
}


def data(runs: Sequence[Run], *, round: int = -1, criterion: str = "label") -> xr.Dataset:
    """Three accuracies (fractions) over models and seed; those of FedAvg over seed where its runs are there.

    Args:
        round: Round that kept its clients; negative counts from the last one.
        criterion: What a client's data are: "label" (test data in its class shares) or "train".
    """
    refusal = {"what": "no run kept the clients of a round", "command": f"{_pools.COMMAND} --set keep.clients=all"}
    suited = _runs.select_suited(runs, lambda run: run.kept("clients"), **refusal, why="it kept no clients")

    def compute(run: Run) -> xr.Dataset:
        return run.cached(three_accuracies, round=round, criterion=criterion)[list(_PANELS)]

    return _pools.stack_over_models(suited, compute).assign_attrs(criterion=criterion)


def draw(ds: xr.Dataset) -> Figure:
    """A panel per accuracy: LSS over the number of models, FedAvg as a dashed level."""
    figure, axs = style.panels(1, 3, height=2.5)
    for ax, (name, title) in zip(axs.flat, _PANELS.items(), strict=True):
        _pools.draw_over_models(ds, name, ax)
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.set_title(title, fontsize=style.small())
        ax.set_xlabel(style.text(ds.models))
    _same_span(axs[0])
    for ax in axs.flat:
        ax.set_ylabel("accuracy")
    return style.key(figure, axs.flat, title=curves.band(ds))


def _same_span(axs: Sequence[Axes]) -> None:
    """Vertical ranges of one length around the middle of each panel's own, so that slopes compare; none below 0."""
    limits = [ax.get_ylim() for ax in axs]
    half = max(high - low for low, high in limits) / 2
    for ax, (low, high) in zip(axs, limits, strict=True):
        foot = (low + high) / 2 - half
        foot = max(foot, 0.0) if ax.dataLim.y0 >= 0 else foot
        ax.set_ylim(foot, foot + 2 * half)

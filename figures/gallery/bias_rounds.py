"""Train bias and heterogeneity bias of the clients over rounds, with the errors of their mean (IMA paper, Fig. 2)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.decomposition.decomposition import decomposition
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _cases, _runs, _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the clients of case_runs rounds"

COST = "seconds per run"

_SHOWN = {"train_bias": "train bias", "heterogeneity_bias": "heterogeneity bias"}

_ERRORS = {"error": ("test error", "-"), "fma_error": ("training error", ":")}


@_selected.each_run(by=True)
def data(run: Run, *, rounds: int | Sequence[int] = 8, samples_per_client: int = 50) -> xr.Dataset:
    """train_bias, heterogeneity_bias, fma_error and error over algorithm, seed and round (and case).

    Args:
        rounds: The rounds that are evaluated, or how many, evenly spaced among those that kept clients.
        samples_per_client: Training samples of each client that the biases and fma_error are averaged over.
        by: A setting whose values are shown below each other, such as local.lr_decay.
    """
    indices = _runs.rounds_among(_runs.kept_clients(run), rounds)
    biases = run.cached(decomposition, rounds=indices, samples_per_client=samples_per_client)
    return biases[[*_SHOWN, "fma_error"]].assign(error=run.metrics()["error"].sel(round=biases["round"]))


def draw(ds: xr.Dataset) -> Figure:
    """Both biases on one scale; the error of the averaged model on the test set and, dotted, on the cohort's data."""
    cases = _cases.split_cases(ds)
    figure, axs = style.panels(len(cases), 3, height=1.75 * len(cases) + 0.9, turned=True)
    for row, (title, case) in zip(axs, cases, strict=True):
        curves.row(case, row, _SHOWN, level=0, **curves.DOTS)
        for variable, (_, line) in _ERRORS.items():
            curves.curve(case, ax=row[2], variable=variable, linestyle=line, names=False, **curves.DOTS)
        row[2].set_ylabel(f"{_ERRORS['error'][0]} ({_ERRORS['fma_error'][0]} dotted)", fontsize=style.small())
        _cases.set_title(row[0], title)
    _cases.share_ranges(axs)
    style.same_range(*axs[:, :2].flat)
    return style.key(figure, axs.flat, title=curves.band(ds))

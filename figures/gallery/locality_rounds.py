"""Largest distance of a client to the clients' mean over rounds, and the test error (IMA paper, Fig. 3)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import locality
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _cases, _selected
from figures.looks import style
from figures.selection.recorded_numbers import with_metric

NEEDS = "runs of any methods, trained in one setting"

COST = "seconds"


@_selected.each_run(by=True)
def data(run: Run) -> xr.Dataset:
    """locality (parameter-space length) and error (fraction) over algorithm, seed and round (and case).

    Args:
        by: A setting whose values are shown below each other, such as local.lr_decay.
    """
    return with_metric(run.cached(locality)[["locality"]], run, "error")


def draw(ds: xr.Dataset) -> Figure:
    """Locality and error over rounds."""
    cases = _cases.split_cases(ds)
    figure, axs = style.panels(len(cases), 2, height=1.8 * len(cases) + 0.6, turned=True)
    labels = {"locality": r"locality $\max_k\|w_k-\bar w\|$", "error": "test error"}
    for row, (title, case) in zip(axs, cases, strict=True):
        curves.row(case, row, labels)
        _cases.set_title(row[0], title)
    _cases.share_ranges(axs)
    for ax in axs[:, 0]:
        ax.set_ylim(bottom=0)
    return style.key(figure, axs.flat, title=curves.band(ds))

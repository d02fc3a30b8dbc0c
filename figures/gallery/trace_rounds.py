"""Trace of the Hessian and of the Gauss-Newton matrix over rounds, and their ratio (Hutch++ paper, algorithm 1)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.curvature.densities import trace_rounds
from drift.runs.run import Run
from figures.axes import curves
from figures.axes.error_bars import error_bars
from figures.gallery import _selected
from figures.looks import style

NEEDS = "runs of any methods, trained in one setting, that kept the global models of some rounds"

COST = "a minute per run"


@_selected.each_run("split")
def data(run: Run, *, rounds: int = 4, split: str = "test", products: int = 60) -> xr.Dataset:
    """trace, gauss_newton_trace, frobenius and share, the ratio of the traces, over algorithm, seed and trace_round.

    Each has its standard error, as NAME_error; that of share is the sum of both relative errors times share, which is
    as large as it can be: the traces are estimated with the same random vectors.

    Args:
        rounds: How many rounds are evaluated, evenly spaced among those that kept their global model.
        split: Samples of the loss.
        products: Matrix-vector products for each trace.
    """
    indices = per_round.evenly_spaced(run.kept("globals"), rounds)
    traces = run.cached(trace_rounds, rounds=indices, split=split, products=products)
    shown = traces.rename({"round": "trace_round", **_ERRORS})[[*_SHOWN, *(f"{name}_error" for name in _SHOWN)]]
    share = (shown.gauss_newton_trace / shown.trace).assign_attrs(long_name="Gauss-Newton share", units="1")
    relative = sum(abs(shown[f"{name}_error"] / shown[name]) for name in _SHOWN[:2])
    error = (abs(share) * relative).assign_attrs(long_name="standard error of the share, at most", units="1")
    about = "the bar of the ratio is the sum of the relative errors of both traces"
    return shown.assign(share=share, share_error=error).assign_attrs(caption=about)


_SHOWN = ("trace", "gauss_newton_trace", "frobenius")
_ERRORS = {"standard_error": "trace_error", "gauss_newton_standard_error": "gauss_newton_trace_error"}


def draw(ds: xr.Dataset) -> Figure:
    """Both traces on one scale, and the Gauss-Newton matrix's part of the Hessian's trace."""
    figure, (row,) = style.panels(1, 3, height=2.6)
    split = ds.attrs["split"]
    labels = {
        "trace": f"trace of the Hessian,\n{split} loss",
        "gauss_newton_trace": f"trace of the Gauss-Newton\nmatrix, {split} loss",
    }
    look = {"over": "trace_round", **curves.DOTS}
    curves.row(ds, row, labels, log=bool((ds[[*labels]].fillna(1) > 0).to_array().all()), **look)
    style.same_range(*row[:2])
    curves.curve(ds, ax=row[2], variable="share", label="Gauss-Newton trace\n/ Hessian trace", level=1, **look)
    for ax, variable in zip(row, (*labels, "share"), strict=True):
        error_bars(ds, variable, ax=ax, over="trace_round")
    return style.key(figure, row, title=curves.band(ds))

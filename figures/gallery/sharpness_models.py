"""Largest Hessian eigenvalue of the global model against the models that a client averages (LSS paper, Table 7)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.curvature.eigenvalues import sharpness_rounds
from drift.runs.run import Run
from figures import papers
from figures.axes import curves
from figures.gallery import _pools, _table_figure
from figures.looks import style

NEEDS = "runs of a method with pools, such as lss, of two sizes or more, alike in all else, that kept globals"

COST = "seconds per run"


def data(
    runs: Sequence[Run],
    *,
    round: int = -1,
    batch: int = 64,
    batches: int | None = 50,
    split: str = "train",
    paper: str = "",
    item: str = "",
) -> xr.Dataset:
    """median over minibatches and full, of all samples, over models and seed; FedAvg's over seed where it is there.

    Args:
        round: Round of the global model; negative counts from the last one that kept it.
        batch, batches: Samples per batch, and how many batches are evaluated; None for all.
        split: Samples of the Hessian.
        paper, item: Whose printed numbers are added, as printed (mark,) and fedavg_printed, such as lss, "Table 7".
    """

    def compute(run: Run) -> xr.Dataset:
        sharpness = run.cached(sharpness_rounds, rounds=[round], batch=batch, batches=batches, split=split)
        return sharpness[["median", "full"]].isel(round=0, drop=True)

    ds = _pools.stack_over_models(runs, compute).assign_attrs(split=split, batch=batch)
    return ds.merge(_printed(paper, item)).assign_attrs(item=item) if paper else ds


def draw(ds: xr.Dataset) -> Figure:
    """Median of batches, and all samples: LSS over the number of models, FedAvg dashed; the paper's in grey."""
    panels = {
        "median": rf"median $\lambda_1$ of batches of {ds.attrs['batch']}",
        "full": rf"$\lambda_1$ of the {ds.attrs['split']} loss",
    }
    figure, axs = style.panels(1, 2 + ("printed" in ds), height=2.5)
    for ax, (name, text) in zip(axs.flat, panels.items(), strict=False):
        _pools.draw_over_models(ds, name, ax)
        ax.set_ylabel(text)
    if "printed" in ds:
        _paper(ds, axs[0, 2])
    for ax in axs.flat:
        style.name_axes(ax, style.text(ds.models), integers=6)
    return style.key(figure, axs[0, :2], title=curves.band(ds))


def _printed(paper: str, item: str) -> xr.Dataset:
    values = {number.row: number.value for number in papers.load(paper).item(item).numbers}
    sizes = {int(row.rpartition(" ")[2]): value for row, value in values.items() if row.startswith("lss, M = ")}
    printed = {"printed": ("mark", list(sizes.values())), "fedavg_printed": ((), values.get("fedavg", np.nan))}
    return xr.Dataset(printed, coords={"mark": list(sizes)})


def _paper(ds: xr.Dataset, ax: Axes) -> None:
    """What the paper prints, in grey on a scale of its own."""
    ax.plot(ds.mark, ds.printed, color=_table_figure.PALE, marker="s", markersize=3, linewidth=1.0)
    ax.axhline(float(ds.fedavg_printed), color=_table_figure.PALE, linestyle="--", linewidth=1.0)
    ax.set_title(
        f"printed in the paper, {ds.attrs['item']}:\nLSS and, dashed, FedAvg",
        fontsize=style.small(),
        color=_table_figure.PALE,
    )
    ax.set_ylabel(r"$\lambda_1$", color=_table_figure.PALE)
    ax.tick_params(colors=_table_figure.PALE)

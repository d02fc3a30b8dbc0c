"""Correlation of the learned client weights with data size and class balance (FedLAW paper, Table 11)."""

import textwrap
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import reweights
from drift.analyses.rounds.weight_factors import pooled_factors, weight_factors
from drift.runs.run import Run
from figures import papers
from figures.axes import weights
from figures.gallery import _runs, _stack, _table_figure
from figures.looks import style
from figures.selection import run_selection
from figures.selection.groups import grouped, settings
from figures.selection.setting_text import differing_words

NEEDS = "runs of a method that learns client weights, such as FedLAW (not GWS), of any settings; four clients or more"

COST = "seconds"


def data(
    runs: Sequence[Run], *, over: str = "sum", confidence: float = 0.95, paper: str = "", item: str = ""
) -> xr.Dataset:
    """pearson, low and high over sample and factor; samples are runs, then runs with one task and cohort pooled.

    For an item of a paper also printed, its own correlations, at the samples with so many local epochs or pooled.

    Args:
        over: "sum" or "mean" of a client's weights over rounds, as in `drift.weight_factors`.
        confidence: Of the intervals.
        paper, item: Whose printed numbers are added, such as fedlaw and "Table 11".
    """
    selected = [run for run in runs if reweights(run)]
    tables = [run.cached(weight_factors, over=over, confidence=confidence) for run in selected]
    usable = [(run, rows) for run, rows in zip(selected, tables, strict=True) if np.isfinite(rows.pearson.values).any()]
    if not usable:
        command = "fedscape train fedlaw-cifar10-dir01 --set method.variant=attentive"
        raise _runs.missing(f"none of {len(runs)} runs learned weights of clients that differ in their data", command)
    run_selection.narrow(runs, [run for run, _ in usable], "it learned no weights of clients that differ in their data")
    columns = ["pearson", "low", "high"]
    results = [rows[columns] for _, rows in usable]
    names = [_name(run) for run, _ in usable]
    for pool in _pools(usable):
        results.append(pooled_factors([rows for _, rows in pool], confidence=confidence)[columns])
        names.append(f"{len(pool)} runs on {pool[0][0].data_name.replace('_', ' ')} pooled")
    joined = xr.concat([rows.drop_attrs(deep=False) for rows in results], "sample", join="exact")
    joined = joined.assign_coords(name=("sample", names))
    if paper:
        epochs = [f"E = {settings(run).get('local.epochs')}" for run, _ in usable]
        numbers = {number.column: number.value for number in papers.load(paper).item(item).numbers}
        labels = [*epochs, *["pooled"] * len(_pools(usable))]
        printed = [[numbers.get(f"{label}, {factor}", np.nan) for factor in _FACTORS] for label in labels]
        joined["printed"] = (("sample", "factor"), np.array(printed))
    return _stack.name_runs(joined, [run for run, _ in usable]).assign_attrs(confidence=confidence)


def draw(ds: xr.Dataset) -> Figure:
    """A panel per factor, a row per run: the correlation, its interval, and both as numbers; hollow where it has 0."""
    height = 0.9 + (0.32 if style.is_narrow() else 0.24) * ds.sizes["sample"] + (0.25 if "printed" in ds else 0)
    figure, axs = style.panels(1, ds.sizes["factor"], height=height, cell=(height - 0.6) / style.NARROW, sharey=True)
    for ax, factor in zip(axs[0], map(str, ds.factor.values), strict=True):
        weights.correlations(ds.sel(factor=factor), ax=ax)
        clear = int(((ds.low > 0) | (ds.high < 0)).sel(factor=factor).sum())
        ax.set_title(f"{_FACTORS[factor]}: clear in {clear} of {ds.sizes['sample']}", fontsize=style.small())
        if "printed" in ds:
            values = ds.printed.sel(factor=factor).values
            look = {"marker": "s", "s": 16, "facecolors": "none", "edgecolors": _table_figure.PALE, "zorder": 4}
            ax.scatter(values, np.arange(len(values)), label="printed in the paper", **look)
    runs = [str(name) for name in ds.name.values if ", " in str(name)]  # pools come last
    names = [*differing_words(runs), *map(str, ds.name.values[len(runs) :])]
    names = [textwrap.fill(name, 20 if style.is_narrow() else 200) for name in names]
    axs[0, 0].set_yticks(range(ds.sizes["sample"]), names)
    style.key(figure, axs[0])
    interval = f"{100 * ds.attrs['confidence']:g} % interval"
    about = f"Pearson correlation with the weight and its {interval} (clear, filled: without 0)"
    figure.supxlabel(textwrap.fill(about, 50 if style.is_narrow() else 200), fontsize=style.small())
    return figure


_FACTORS = {"size": "data size DS", "balance": "class balance HD", "product": r"DS $\times$ HD"}


def _pools(usable: Sequence[tuple[Run, xr.Dataset]]) -> list[list[tuple[Run, xr.Dataset]]]:
    """Runs whose weights are on one scale: the same task, clients and number of rounds; two runs or more."""

    def setting(pair: tuple[Run, xr.Dataset]) -> str:
        spec = pair[0].experiment
        return f"{spec.task!r} {spec.clients!r} {spec.rounds}"

    return [group for group in grouped(usable, setting).values() if len(group) > 1]


def _name(run: Run) -> str:
    spec = run.experiment
    return f"{style.label(run.label)}, {run.data_name.replace('_', ' ')}, E = {spec.local.epochs}, seed {spec.seed}"

"""Box plots of the Kalman gain for several Dirichlet concentrations and local epochs (FedEve paper, Fig. 4)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.variance import drift_variances
from drift.plugins import tables
from drift.runs.run import Run
from figures.axes import drifts
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection.groups import largest_group

NEEDS = "runs of one method with Dirichlet partitions of two concentrations or more"

COST = "seconds"


def data(runs: Sequence[Run], *, skip: int = 1, momentum: str = "recorded") -> xr.Dataset:
    """gain over concentration, epochs and what is pooled: sample, a round of a run.

    Users who hold their own data (the paper's natural column) have an infinite concentration. Of several methods or
    tasks, that with most concentrations and epochs is shown, FedEve among equals.

    Args:
        skip: First rounds left out, in which the server has no momentum yet.
        momentum: What a round's update is compared with, as in `drift.drift_variances`.
    """
    selected = _select(runs)
    levels = sorted({_concentration(run) for run in selected})
    if len(levels) < 2:
        command = "fedscape sweep fedeve-femnist-dir001-quick --grid clients.concentration=0.01,0.1,1"
        raise _runs.missing("these runs have fewer than two Dirichlet concentrations", command)
    epochs = sorted({run.experiment.local.epochs for run in selected})
    cells = {(level, number): _gains(selected, level, number, skip, momentum) for level in levels for number in epochs}
    gains = _stack.fill_array(cells, {"concentration": levels, "epochs": epochs}, "Kalman gain", "1", "sample")
    ds = gains.drop_vars("sample").to_dataset(name="gain")
    return _stack.name_runs(ds, selected).assign_attrs(method=selected[0].label)


def draw(ds: xr.Dataset) -> Figure:
    """One box per concentration and number of epochs."""
    figure, axs = style.panels(1, 1, width=style.NARROW, height=2.4)
    ax = drifts.kalman_gains(ds, ax=axs[0, 0])
    ax.set_ylim(0, 1.02)
    method = style.label(ds.attrs["method"])
    if ds.sizes["epochs"] > 1:
        ax.legend(title=f"{method}, local training")
    else:
        epochs = int(ds.epochs[0])
        ax.set_title(f"{method}, {epochs} local {'epoch' if epochs == 1 else 'epochs'}", fontsize=style.small())
    return figure


def _select(runs: Sequence[Run]) -> list[Run]:
    """Runs of one method on one task with one number of clients: the group of most concentrations, then epochs."""

    def setting(run: Run) -> str:
        clients = run.experiment.clients
        return f"{run.label} {run.experiment.task!r} {clients.number} {clients.per_round}"

    def size(group: list[Run]) -> tuple[int, int, bool]:
        levels = {_concentration(run) for run in group}
        return len(levels), len({run.experiment.local.epochs for run in group}), group[0].label == "fedeve"

    return largest_group((run for run in runs if not np.isnan(_concentration(run))), setting, size)


def _concentration(run: Run) -> float:
    """Concentration of a Dirichlet partition, infinite where users hold their own data, NaN for any other."""
    partition = run.experiment.clients.partition
    name = tables.name(partition)
    if name == "users":
        return float("inf")
    return float(getattr(partition, "concentration", np.nan)) if name in ("dirichlet", "dirichlet_clients") else np.nan


def _gains(runs: Sequence[Run], level: float, epochs: int, skip: int, momentum: str) -> np.ndarray:
    """Gains of all rounds of the runs with this concentration and number of epochs."""
    wanted = [run for run in runs if _concentration(run) == level and run.experiment.local.epochs == epochs]
    results = [run.cached(drift_variances, momentum=momentum) for run in wanted]
    if any(result.attrs.get("block", 1) > 1 for result in results):
        raise LookupError("a file has means over several rounds, not the gain of each; give the folders of the runs")
    gains = [result.gain.values[skip:] for result in results]
    return np.concatenate(gains) if gains else np.zeros(0)

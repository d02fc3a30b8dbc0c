"""Gain by adaptive shrinking, the factor learned and the length of the step, over a setting (FedLAW paper, Fig. 2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import regularisation_ratio_mean
from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from figures.axes import curves
from figures.gallery import _runs, _stack
from figures.looks import palette, style
from figures.selection import partition_text, setting_text

NEEDS = "runs of FedAvg and FedLAW (GWS) with two values or more of a setting, such as local.epochs"

COST = "seconds"

_CellKey = tuple[str, Any, int]
"""Line, value of the setting, seed."""

_SHOWN = ("gain", "gamma", "optimisation")


def data(
    runs: Sequence[Run],
    *,
    over: str = "local.epochs",
    method: str = "fedlaw-gws",
    reference: str = "fedavg",
    last: int = 10,
    window: tuple[float, float] = (0.45, 0.55),
) -> xr.Dataset:
    """gain (points), gamma and optimisation over line, value (of the setting) and seed.

    A line is a partition of the data, or all where the setting itself is one of the partition. Figure 9 of the paper
    is that over clients.concentration.

    Args:
        over: The setting by key, such as local.epochs, clients.concentration or local.weight_decay.
        method, reference: Labels of what is shown, and of what its accuracy is compared with.
        last: Rounds at the end that accuracies are means over.
        window: Rounds that gamma and the norm are means over, as in `drift.regularisation_ratio_mean`.

    Raises:
        LookupError: If there are no two values at which both methods were run.
        ValueError: If two runs have the same method, value, line and seed.
    """
    pairs = _pairs(runs, over, method, reference)
    lines, values = _ordered(pairs), sorted({value for _, value, _ in pairs})
    if len(values) < 2:
        command = f"fedscape sweep fedlaw-cifar10-gws-quick --grid method=fedavg,fedlaw {over}=1,2"
        raise _runs.missing(f"{method} and {reference} share {len(values)} values of {over}", command)
    seeds = sorted({seed for _, _, seed in pairs})
    late = {run.folder: mean_of_last(run, "accuracy", last) for pair in pairs.values() for run in pair}
    middle = {cell: run.cached(regularisation_ratio_mean, window=window) for cell, (run, _) in pairs.items()}
    gains = {cell: 100 * (late[run.folder] - late[other.folder]) for cell, (run, other) in pairs.items()}
    factors = {cell: float(means.gamma) for cell, means in middle.items()}
    norms = {cell: float(means.optimisation) for cell, means in middle.items()}
    axes: dict[str, Sequence[Any]] = {"line": lines, "value": values, "seed": seeds}
    ds = xr.Dataset(
        {
            "gain": _stack.fill_array(gains, axes, f"gain over {style.label(reference)}", "points"),
            "gamma": _stack.fill_array(factors, axes, r"learned factor $\gamma$", "1"),
            "optimisation": _stack.fill_array(norms, axes, r"norm $\|\gamma \eta_g g\|$ of the update", "1"),
        },
        attrs={"over": over, "method": method, "reference": reference},
    )
    ds.value.attrs.update(long_name=setting_text.key_label(over))
    return _stack.name_runs(ds, [run for pair in pairs.values() for run in pair])


def draw(ds: xr.Dataset) -> Figure:
    """Gain, factor, norm: a line per partition, values of the setting evenly spaced."""
    figure, axs = style.panels(1, 3, height=2.5)
    for ax, name in zip(axs.flat, _SHOWN, strict=True):
        _lines(ds, name, ax)
    curves.mark_level(axs[0, 0])
    curves.mark_level(axs[0, 1], 1)
    axs[0, 1].set_ylim(*np.clip(axs[0, 1].get_ylim(), (-np.inf, 1.1), (0.9, np.inf)))  # a thousandth is no difference
    return style.key(figure, axs.flat, title=curves.band(ds))


def _lines(ds: xr.Dataset, name: str, ax: Axes) -> None:
    colour = style.colour(ds.attrs["method"])
    lines = ds[name].assign_coords(value=np.arange(ds.sizes["value"]))
    for index, line in enumerate(map(str, ds.line.values)):
        look: dict[str, Any] = {"linestyle": palette.DASHES[index % 4], "marker": palette.MARKERS[index % 4]}
        look["markersize"] = 3
        look |= {"label": line} if ds.sizes["line"] > 1 else {}
        curves.line_with_band(lines.sel(line=line), ax=ax, over="value", color=colour, **look)
    ax.set_xticks(range(ds.sizes["value"]), [setting_text.value_text(value) for value in ds.value.values.tolist()])
    style.name_axes(ax, style.text(ds.value), style.text(ds[name]))


def _pairs(runs: Sequence[Run], over: str, method: str, reference: str) -> dict[_CellKey, tuple[Run, Run]]:
    """The run of the method and that of the reference, wherever both are there."""
    table = _stack.by_cell(
        (
            ((run.label, _line(run, over), value, run.experiment.seed), run)
            for run in runs
            if run.label in (method, reference) and (value := setting_text.value(run, over)) is not None
        ),
        lambda first, second, _: (
            f"{first.name} and {second.name} differ in more than {over}; give runs of one setting."
        ),
    )
    pairs = {(line, value, seed): run for (label, line, value, seed), run in table.items() if label == method}
    return {cell: (run, table[reference, *cell]) for cell, run in pairs.items() if (reference, *cell) in table}


def _line(run: Run, over: str) -> str:
    """The run's partition in words, without its concentration where that is what is varied."""
    if over != "clients.concentration":
        return partition_text.partition_label(run)
    plain = run.experiment.clients.partition.model_copy(update={"concentration": 1.0})
    return partition_text.describe_partition(plain).replace("Dir(1)", "Dirichlet")


def _ordered(pairs: dict[_CellKey, tuple[Run, Run]]) -> list[str]:
    """Lines from the least to the most skewed partition, by concentration where there is one."""
    concentrations = {
        line: setting_text.value(run, "clients.concentration") for (line, _, _), (run, _) in pairs.items()
    }
    return sorted(concentrations, key=lambda line: (-(concentrations[line] or 0), line))

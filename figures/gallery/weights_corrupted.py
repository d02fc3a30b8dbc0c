"""Weight that FedLAW gives to clean and to corrupted clients, over rounds (FedLAW paper, Table 8)."""

from collections.abc import Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.norms_and_weights import aggregation_weights
from drift.runs.run import Run
from figures.axes import curves, method_looks
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.looks.look import current

NEEDS = "runs of FedLAW (any variant but GWS), or of other methods, with some corrupted clients (clients.corrupted)"

COST = "seconds"

_GROUPS = {"clean": "-", "corrupted": (0, (3, 1.2))}


def data(runs: Sequence[Run], *, smooth: int = 3) -> xr.Dataset:
    """weight_ratio over panel (share of corrupted clients), algorithm, group, seed and round.

    It is the mean over the clients of a group of their weight over their share of the data, 1 under plain averaging.

    Args:
        smooth: Rounds of a moving average, this one and those before it.

    Raises:
        LookupError: If no run has corrupted clients.
        ValueError: If two runs have the same method, share and seed.
    """
    corrupted = [run for run in runs if run.experiment.clients.corrupted]
    shares = [len(run.dataset.corrupted) / run.experiment.clients.number for run in corrupted]
    table = _stack.by_cell(
        (((share, run.label, run.experiment.seed), run) for share, run in zip(shares, corrupted, strict=True)),
        lambda first, second, _: f"{first.name} and {second.name} differ in other settings; give runs of one setting.",
    )
    if not table:
        command = "fedscape train fedlaw-cifar10-dir1-quick --set clients.corrupted=0.5"
        raise _runs.missing(f"none of {len(runs)} runs has corrupted clients", command)
    panels = sorted({share for share, _, _ in table})
    names, seeds = style.order(name for _, name, _ in table), sorted({seed for _, _, seed in table})
    ratios = {}
    for (panel, name, seed), run in table.items():
        ratio = run.cached(aggregation_weights).weight_ratio.rolling(round=smooth, min_periods=1).mean()
        bad = ratio.client.isin(sorted(run.dataset.corrupted))
        for group, side in zip(_GROUPS, (ratio.where(~bad), ratio.where(bad)), strict=True):
            ratios[panel, name, group, seed] = side.mean("client").transpose("round").values
    axes: dict[str, Sequence[Any]] = {"panel": panels, "algorithm": names, "group": list(_GROUPS), "seed": seeds}
    array = _stack.fill_array(ratios, axes, r"weight $\lambda$ over data share", "1", "round")
    array.attrs["moving"] = f"moving mean of {smooth} rounds" * (smooth > 1)
    return _stack.name_runs(array.to_dataset(name="weight_ratio"), list(table.values()))


def draw(ds: xr.Dataset) -> Figure:
    """A panel per share of corrupted clients on one scale: clean solid, corrupted dashed."""
    count = ds.sizes["panel"]
    if moving := ds.weight_ratio.attrs.get("moving"):
        current().remark(moving)
    figure, axs = style.panels(1, count, width=style.WIDE if count > 1 else style.NARROW, height=2.6, sharey=True)
    for ax, panel in zip(axs[0], ds.panel.values, strict=True):
        for name, series in curves.split_algorithms(ds.weight_ratio.sel(panel=panel)):
            for group, dashes in _GROUPS.items():
                look = method_looks.line_look(str(name), linestyle=dashes, linewidth=1.1)
                look["label"] = f"{style.label(str(name))}, {group}"
                curves.line_with_band(series.sel(group=group), ax=ax, over="round", **look)
        curves.mark_level(ax, 1)
        ax.set_title(f"{panel:.0%} of the clients corrupted", fontsize=style.small())
        ax.set_xlabel("round")
    for ax in axs.flat:
        ax.set_ylabel(style.text(ds.weight_ratio))
    return style.key(figure, axs.flat, title=curves.band(ds), columns=4 if count > 1 else 2)

"""Shrinking factor and client weights that FedLAW learns, over rounds (FedLAW paper, Figs. 3, 5 and 14)."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.labels import balance_groups, require_partition
from drift.analyses.rounds.norms_and_weights import aggregation_weights
from drift.runs.run import Run
from figures.axes import colour_bars, curves, weights
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection.recorded_numbers import numbers_of_record, present

NEEDS = "runs of FedLAW, any variant, or another method that learns weights, trained in one setting"

COST = "seconds"


def data(runs: Sequence[Run]) -> xr.Dataset:
    """gamma over algorithm, seed and round; weights and weight_ratio over algorithm, seed, round and client.

    Also balanced_weight and balanced_share over algorithm, seed and round: of the clients that hold the classes
    evenly (`drift.analyses.rounds.labels.balance_groups`), the sum of their weights, and of their shares of the
    cohort's data; not where it is unknown who held which samples.
    """
    return _stack.stack_runs(_runs.select_comparable(_runs.select_learned(runs)), _with_groups)


def draw(ds: xr.Dataset) -> Figure:
    """gamma of every variant, or the balanced clients' weight where gamma stays 1; lambda of one variant and seed.

    Without the weights of clients gamma alone is drawn.
    """
    if not present(ds, ["weight_ratio"]):
        figure, axs = style.panels(1, 1, width=style.NARROW, height=2.5)
        curves.curve(ds, ax=axs[0, 0], variable="gamma", label=r"shrinking factor $\gamma$", level=1)
        return style.key(figure, axs.flat, title=curves.band(ds))
    figure, axs = style.panels(1, 2, height=2.5, width_ratios=(1, 1.25))
    names = style.order(map(str, ds.algorithm.values))
    away = {name: float(abs(ds.weight_ratio.sel(algorithm=name) - 1).max()) for name in names}
    shown = next((name for name in names if away[name] > 1e-4), names[0])
    if bool((abs(ds.gamma - 1) > 1e-4).any()) or "balanced_weight" not in ds:
        curves.curve(ds, ax=axs[0, 0], variable="gamma", label=r"shrinking factor $\gamma$", level=1)
    else:
        curves.curve(ds, ax=axs[0, 0], variable="balanced_weight")
        by_size = curves.mean(ds.balanced_share.sel(algorithm=shown), "seed")
        look = {"color": "#555555", "linewidth": 0.9, "linestyle": ":"}
        axs[0, 0].plot(ds["round"], by_size, label="by data size", **look)
    style.key(figure, [axs[0, 0]], title=curves.band(ds))
    learned = ds.sel(algorithm=shown)
    seed = next(seed for seed in learned.seed.values if bool(learned.weights.sel(seed=seed).notnull().any()))
    weights.shares(learned.sel(seed=seed), ax=axs[0, 1], variable="weight_ratio")
    axs[0, 1].set_title(f"{style.label(shown)}, seed {seed}", fontsize=style.small())
    mesh = axs[0, 1].collections[0]
    beyond = "both" if mesh.get_clim()[1] == weights.MOST else "neither"
    bar = figure.colorbar(mesh, ax=axs[0, 1], label=r"weight $\lambda$ over data share", extend=beyond)
    colour_bars.round_ticks(bar, np.array(mesh.get_clim()), tall=True)
    return figure


def _with_groups(run: Run) -> xr.Dataset:
    ds = numbers_of_record(run, aggregation_weights, ("gamma", "weights", "weight_ratio"))
    try:
        require_partition(run)
    except LookupError:  # it was imported without its partition
        return ds
    balanced = ds.client.isin(balance_groups(run)["balanced"])
    balanced_weights = ds.weights.where(balanced)
    about = {"long_name": "weight of the balanced clients", "units": "fraction"}
    shares = (balanced_weights / ds.weight_ratio).assign_attrs(about)
    return ds.assign(
        balanced_weight=balanced_weights.sum("client", min_count=1).assign_attrs(about),
        balanced_share=shares.sum("client", min_count=1, keep_attrs=True),
    )

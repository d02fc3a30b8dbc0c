"""Shrinking factor and client weights of FedLAW as the server learns them, by server epoch (FedLAW paper, Fig. 14)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.per_round import evenly_spaced
from drift.analyses.rounds.weight_factors import server_epochs
from drift.runs.run import Run
from figures.axes import weights
from figures.gallery import _selected
from figures.looks import style

NEEDS = "one run of FedLAW, any variant, or another method that records how it learned weights"

COST = "seconds"


def _learning(run: Run) -> list[int]:
    """Rounds in which the server recorded its epochs."""
    return [record.index for record in run.without_models(run.rounds()) if "gamma_epochs" in record.extras]


@_selected.one_suited_run(
    _learning,
    usual="fedlaw",
    what="no run recorded how its server learned weights",
    command="fedscape train digits-shards2 --set method.name=fedlaw",
    why="it recorded no server epochs",
)
def data(run: Run, *, rounds: Sequence[int] | None = None) -> xr.Dataset:
    """gamma and proxy_loss (nats) over round and epoch, lambda over round, epoch and client.

    Args:
        method: Whose run is shown, if it is there.
        rounds: Rounds shown; by default the first, a middle and the last one in which the server learned.
    """
    selected = evenly_spaced(_learning(run), 3) if rounds is None else list(rounds)
    results = [run.cached(server_epochs, round=index).drop_attrs(deep=False) for index in selected]
    return xr.concat(results, "round", join="outer").assign_coords(round=selected).assign_attrs(label=run.label)


def draw(ds: xr.Dataset) -> Figure:
    """gamma and the proxy loss, a line per round; lambda of the last round, a line per client."""
    figure, axs = style.panels(1, 3)
    weights.epochs(ds, ax=axs[0, 0], variable="gamma", settled="gamma_settled")
    axs[0, 0].set_ylabel(r"shrinking factor $\gamma$")
    last = ds.isel(round=-1)
    weights.epochs(last, ax=axs[0, 1], variable="lambda", settled="lambda_settled")
    axs[0, 1].set_ylabel(r"client weight $\lambda$")
    axs[0, 1].set_title(f"{style.label(ds.attrs['label'])}, round {int(last['round'])}", fontsize=style.small())
    weights.epochs(ds, ax=axs[0, 2], variable="proxy_loss")
    return style.key(figure, axs.flat)

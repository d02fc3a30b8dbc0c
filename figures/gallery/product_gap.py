"""The gap between the mean of clients' low-rank products and the product of their means (FedIT; this project)."""

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.rounds.product_gap import product_gap
from drift.runs.run import Run
from figures.axes import curves
from figures.gallery import _selected
from figures.looks import style
from landscape.model.adapters import factor_names

NEEDS = "runs of any methods whose clients train low-rank adapters, which kept the clients of some rounds"

COST = "seconds per run"

_SHOWN = {
    "relative": "gap over the mean product [%]",
    "of_step": "gap over the round's step [%]",
    "missed_of_step": "missed by the server, over the round's step [%]",
}


@_selected.each_run(
    select=_selected.suited(
        lambda run: factor_names(run.layout.slices()) and run.kept("clients"),
        what="no run has low-rank adapters and kept its clients",
        command="fedscape train FILE.toml --set task.model_options.lora=4 (docs/howto-adapters.md)",
        why="it has no low-rank adapters, or kept no clients",
    )
)
def data(run: Run) -> xr.Dataset:
    """relative, of_step and missed_of_step (percent) over algorithm, seed and round."""
    ds = run.cached(product_gap)[list(_SHOWN)]
    return ds.assign({name: (100 * values).assign_attrs(values.attrs, units="%") for name, values in ds.items()})


def draw(ds: xr.Dataset) -> Figure:
    """A panel for the gap as a share of the product, for its share of the step, and for what the server in fact did."""
    figure, axs = style.panels(1, 3)
    for ax, (name, text) in zip(axs.flat, _SHOWN.items(), strict=True):
        curves.curve(ds, ax=ax, variable=name, label=text, **curves.DOTS)
    return style.key(figure, axs.flat, title=curves.band(ds))

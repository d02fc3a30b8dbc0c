"""Loss and error along trained curves between two clients against the straight line (paper of Garipov et al. 2018)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.barriers import mode_curve
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _runs, _selected, _stack
from figures.looks import style

NEEDS = "one run that kept the clients of a round with two clients or more"

COST = "a minute per run"


@_selected.one_run
def data(
    run: Run, *, rounds: Sequence[int] | None = None, kind: str = "bezier", steps: int = 300, points: int = 31
) -> xr.Dataset:
    """loss and straight_loss (nats), error and straight_error (fraction) over round and t.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: By default the first and the last one that kept its clients.
        kind: "bezier" or "polygon".
        steps: Minibatches that a curve is trained on.
        points: Evaluations on a path.
    """
    indices = _runs.rounds_with_clients(run, least=2, count=2, rounds=rounds)
    results = [run.cached(mode_curve, round=index, kind=kind, steps=steps, points=points) for index in indices]
    joined = xr.concat([result.drop_attrs(deep=False) for result in results], "round", join="exact")
    return joined.assign_coords(round=indices).assign_attrs(kind=kind)


def draw(ds: xr.Dataset) -> Figure:
    """Loss and error: curves solid, straight lines dashed, one colour per round."""
    variables = _stack.measured(ds)
    figure, (row,) = style.panels(1, len(variables), height=2.4)
    name = {"bezier": "Bezier curve", "polygon": "polygonal chain"}[ds.attrs["kind"]]
    for ax, variable in zip(row, variables, strict=True):
        for index, colour in enumerate(style.steps(ds.sizes["round"])):
            curve = ds.isel(round=index)
            for prefix, look, what in (("", "-", name), ("straight_", "--", "straight line")):
                label = f"round {int(curve['round'])}, {what}"
                ax.plot(curve.t, curve[prefix + variable], look, color=colour, label=label)
        style.name_axes(ax, style.text(ds.t), style.text(ds[variable]))
        surfaces.ends(ax, "one client", "another")
    style.logarithmic(row[0])
    return style.key(figure, row, columns=2 * ds.sizes["round"] if ds.sizes["round"] < 3 else 4)

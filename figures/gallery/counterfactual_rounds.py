"""What the global steps are made of when all clients are retrained, and what each part costs (FedEve, equation 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.runs.run import Run
from figures.axes import curves, legends
from figures.gallery import _runs, _selected
from figures.looks import palette, style

NEEDS = "a run that kept its globals; runs of the same method with other seeds are averaged"

COST = "minutes per run"

_LINES = ["norm", "loss_cost", "client_norm", "expected_sampling"]
_LINES += [f"{drift}_{kind}" for drift in ("sampling", "client") for kind in ("variance", "estimate")]


@_selected.each_run(select=_selected.of_method)
def data(run: Run, *, rounds: int | Sequence[int] = 8, scale: str = "fit", workers: int = 1) -> xr.Dataset:
    """norm and loss_cost over algorithm, seed, round and part; norms and variances of the drifts over round.

    Args:
        method: Whose runs are shown; by default those of FedAvg, or of the first method.
        rounds: The rounds that are retrained, or how many, evenly spread over those that kept their globals.
        scale: Of the gradients at the start, "fit" or "steps".
        workers: Processes that share the trainings.
    """
    indices = _runs.rounds_among(run.kept("globals"), rounds) or None
    return run.cached(counterfactual, rounds=indices, scale=scale, workers=workers)[_LINES]


def draw(ds: xr.Dataset) -> Figure:
    """Sizes of both splits of the step, losses that the parts cost, and drift variances with their estimates.

    Gradients are those at the start of a round; the expected sampling drift is that of a random cohort.
    """
    figure, axs = style.panels(2, 2, height=4.2, cell=0.15, sharex=style.is_narrow())
    terms = ds.isel(algorithm=0)
    has_server = float(terms.norm.sel(part="server").max()) > 1e-4 * float(terms.norm.sel(part="step").max())
    drifts = ["full", "sampling", "client", *(["server"] if has_server else [])]
    for name in drifts:
        values = terms.client_norm if name == "client" else terms.norm.sel(part=name)
        _line(values, axs[0, 0], name)
    expected = {"linestyle": ":", "marker": "", "label": "sampling drift, expected"}
    _line(terms.expected_sampling, axs[0, 0], "sampling", **expected)
    for name in ("gradient", "gradient_sampling", "local"):
        _line(terms.norm.sel(part=name), axs[0, 1], name)
    style.same_range(*axs[0])
    for name in ("sampling", *drifts[3:], "gradient_sampling", "local"):
        _line(terms.loss_cost.sel(part=name), axs[1, 0], name)
    curves.mark_level(axs[1, 0])
    for name, what in (("sampling", "update change"), ("client", "client drift")):
        _line(terms[f"{name}_variance"], axs[1, 1], name)
        hollow = {"linestyle": ":", "markerfacecolor": mpl.rcParams["axes.facecolor"]}
        _line(terms[f"{name}_estimate"], axs[1, 1], name, **hollow, label=f"{what}, eq.\xa013")
    style.logarithmic(axs[1, 1])
    texts = ("norm, drift parts", "norm, gradient parts", style.with_unit("loss that the part costs", terms.loss_cost))
    for ax, text in zip(axs.flat, (*texts, "drift variance per parameter"), strict=True):
        style.name_axes(ax, "round", text, integers=5)
    title = ", ".join(filter(None, [style.label(str(ds.algorithm.values[0])), curves.band(ds)]))
    return legends.side_legends(figure, axs, title=title, columns=3, always=True)


def _line(values: xr.DataArray, ax: Axes, name: str, **look: Any) -> None:
    label, colour = palette.TERMS[name]
    index = list(palette.TERMS).index(name)
    shown: dict[str, Any] = {"color": colour, "label": label, "marker": "osD^vPX"[index], "markersize": 3.2}
    shown["linestyle"] = palette.DASHES[(0, 1, 0, 2, 0, 3, 4)[index]]  # alike in grey, they differ by dashes
    curves.line_with_band(values, ax=ax, over="round", **{**shown, **look})

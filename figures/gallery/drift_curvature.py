"""Where drift lies against the sharpest directions, what it costs, and what the mean removes (this project)."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.curvature.averaging import averaging_gap
from drift.analyses.curvature.drift_curvature import KINDS, Kind, drift_curvature
from drift.runs.run import Run
from figures.axes import curves, legends
from figures.gallery import _runs, _selected
from figures.looks import palette, style

NEEDS = "one run of any method that kept the clients of some rounds"

COST = "minutes per run"

_LOOK = {**palette.TERMS, "step": ("server's step", "#333333"), "random": ("random directions", "#999999")}
_LOOK["change"] = ("update change", "#009E73")


@_selected.one_run
def data(
    run: Run, *, rounds: int | Sequence[int] = 5, kinds: Sequence[Kind] = KINDS, k: int = 10, samples: int = 500
) -> xr.Dataset:
    """share, cost and quadratic over round and kind; removed_sharp and removed_rest over round.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        rounds: The rounds shown, or how many, evenly spread over those that kept their clients.
        kinds: Displacements, as in `drift.drift_curvature`.
        k: Number of sharpest directions.
        samples: Test samples of the Hessian.
    """
    options = {"rounds": _runs.rounds_among(_runs.kept_clients(run), rounds) or None, "k": k, "samples": samples}
    costs, gap = run.cached(drift_curvature, kinds=list(kinds), **options), run.cached(averaging_gap, **options)
    removed = gap[["removed_sharp", "removed_rest"]]
    _runs.require_moves(gap.removed.notnull(), run.name)
    return costs[["share", "cost", "quadratic"]].assign(removed.data_vars).assign_attrs(label=run.label)


def draw(ds: xr.Dataset) -> Figure:
    """Shares in the sharpest directions, exact and second-order costs, and the shares that the mean removes."""
    figure, axs = style.panels(1, 3, cell=0.2, sharex=True)
    curves.require_values(ds.share)
    for index, kind in enumerate(ds.kind.values.tolist()):
        artist = dict(zip(("label", "color"), _LOOK[kind], strict=True)) | {"marker": "Dos^vPX"[index % 7]}
        artist["linestyle"] = palette.DASHES[index % 2]
        for ax, name, more in ((axs[0, 0], "share", {}), (axs[0, 1], "cost", {}), (axs[0, 1], "quadratic", _DOTTED)):
            curves.line_with_band(ds[name].sel(kind=kind), ax=ax, over="round", **curves.DOTS | artist | more)
    for name, label, colour in (("sharp", "sharpest directions", "#D55E00"), ("rest", "all others", "#0B5C85")):
        dashes = {"color": colour, "label": label, "linestyle": palette.DASHES[name == "rest"]}
        curves.line_with_band(ds[f"removed_{name}"], ax=axs[0, 2], over="round", **curves.DOTS | dashes)
    style.logarithmic(axs[0, 0])
    k, unsure = ds.attrs["k"], ds.attrs["undetermined"]
    texts = (f"share in the {k} sharpest directions", style.with_unit("cost of the displacement", ds.cost))
    for ax, text in zip(axs[0], (*texts, "squared updates that the mean removes"), strict=True):
        style.name_axes(ax, "round", text, integers=5)
    which = f"; in round{'s' * (',' in unsure)} {unsure} the {k} sharpest directions are not unique" if unsure else ""
    title = f"{style.label(ds.attrs['label'])}{which}"
    return legends.side_legends(figure, axs, title=title, columns=3)


_DOTTED = {"linestyle": ":", "marker": "", "label": "second order"}

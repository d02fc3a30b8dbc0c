"""The plane or line through any models of a round (planes as in IMA paper, Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.models_plane import models_line, models_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _planes, _runs, _selected
from figures.looks import style
from landscape.surfaces.sampling_error import SUFFIX
from landscape.sweep.precision import Precision

NEEDS = "one run that kept the models of a round"

COST = "seconds per run"


@_selected.one_run
def data(
    run: Run,
    *,
    round: int | None = None,
    models: Sequence[str] | None = None,
    variable: str = "loss",
    points: int = 21,
    margin: float = 0.3,
    box: Sequence[float] | None = None,
    split: str = "test",
    samples: int | None = None,
    precision: Precision = "exact",
    folds: int = 0,
) -> xr.Dataset:
    """loss (nats), error and class_error (fractions) over alpha and beta, or over t between two models.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        round: By default the last one.
        models: Names of three models, or of two for a line: start, end, aggregate, "client 3", "round 12", "RUN: round
            12".
        variable: What is drawn: loss, error, or the error of a class, "class NAME".
        points, margin, box: The grid, as in `drift.models_plane`.
        split, samples, precision: How it is evaluated, as in `drift.models_plane`.
        folds: Parts of the samples for the sampling error, such as 20: what may be as low as the lowest point is
            hatched, the interval of a line is a band. By default none, and classes have none.
    """
    if not run.kept("globals") and not run.kept("clients"):
        raise _runs.missing(f"run {run.name} kept no models", _runs.KEEP_CLIENTS)
    index = run.require_round(-1 if round is None else round)
    options = {"round": index, "models": None if models is None else list(models), "split": split, "samples": samples}
    options |= {"points": points, "precision": precision, "folds": folds}
    if models is not None and len(models) == 2:
        ds = run.cached(models_line, **options)
    else:
        ds = run.cached(models_plane, **options, margin=margin, box=None if box is None else list(box))
    return _shown(ds, variable)


_FOLDED = "; with folds there are no classes"


def _shown(ds: xr.Dataset, variable: str) -> xr.Dataset:
    """The data with the variable that is drawn as `shown`, and at the models as `mark_shown`.

    Raises:
        ValueError: If there is no such variable or class.
    """
    kind, _, label = variable.partition(" ")
    classes = [str(name) for name in ds["class"].values] if "class" in ds.dims else []
    if kind == "class" and label in classes:
        errors = ds[["class_error", "mark_class_error"]].sel({"class": label}, drop=True)
        ds = ds.assign(shown=errors.class_error, mark_shown=errors.mark_class_error)
        ds["shown"].attrs["long_name"] = f"error of class {label}"
    elif variable in ("loss", "error") and variable in ds:
        ds = ds.assign(shown=ds[variable], mark_shown=ds[f"mark_{variable}"])
        if f"{variable}{SUFFIX}" in ds:
            ds[f"shown{SUFFIX}"] = ds[f"{variable}{SUFFIX}"]
    else:
        known = [name for name in ("loss", "error") if name in ds] + [f"class {name}" for name in classes]
        raise ValueError(f"no variable {variable!r}; there are {', '.join(known)}{_FOLDED * ('folds' in ds.attrs)}.")
    return ds.assign_attrs(variable=variable)


@style.styled
def draw(ds: xr.Dataset) -> Figure:
    """A contour map, or a profile over the line."""
    log = ds.attrs["variable"] == "loss"
    if "t" in ds.dims:
        figure, axs = style.panels(1, 1, width=style.NARROW, height=2.8)
        surfaces.profile(ds, ax=axs[0, 0], variable="shown", log=log, color=style.GLOBAL)
        surfaces.ends(axs[0, 0], *(str(name) for name in ds.mark.values[:2]))
        return figure
    shape = float(np.ptp(ds.beta.values) / np.ptp(ds.alpha.values))
    figure, axs = style.panels(1, 1, width=style.NARROW, height=min(max(2.4 * shape + 0.7, 2.0), 4.5))
    levels = surfaces.common_levels(ds.shown, log=log)
    surfaces.contour(ds, ax=axs[0, 0], variable="shown", levels=levels, bar=True)
    return _planes.key(figure, axs, "a model")

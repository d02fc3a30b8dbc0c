"""Minima on the planes of a run, with the errors of the fit and of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.planes import global_plane, round_plane
from drift.analyses.landscapes.sweeps import client_sweep, global_sweep
from drift.analyses.selected_samples import at_most
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.batchnorm import Statistics
from landscape.model.task import Split
from landscape.surfaces.minimum import Minimum, add_sampling_error, fitted_minimum, label_minimum
from landscape.sweep.grid import Sweep

FOLDS = 20
"""Default number of parts of the samples that are left out in turn."""


@analysis(cost="evaluations")
def round_minimum(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    box: str = "marks",
    split: str = "test",
    samples: int | None = None,
    statistics: Statistics | None = None,
    folds: int = FOLDS,
) -> xr.Dataset:
    """Minimum of the loss on the plane through three client models of one round, and its distance from their mean.

    The minimum is that of a quadratic fitted below the grid of `round_plane` with the same arguments. Its standard
    error is that of the fit and that of the samples, by the jackknife over `folds` random parts of them.

    Source: IMA paper, section 3.2 (the mean of the clients lies off the centre of their basin).

    Args:
        run: Run to analyse.
        round, clients, points, margin, box, split, samples, statistics: As in `round_plane`.
        folds: Number of parts of the samples.

    Returns:
        Dataset as `landscape.surfaces.minimum.label_minimum` returns it: the place is NaN where the minimum is not
        inside the grid, and minimum_reason says why.

    Raises:
        LookupError, ValueError: As `round_plane`; ValueError also for fewer than two folds.
    """
    _, _, sweep = client_sweep(run, round, clients, points=points, margin=margin, box=box)
    options = {"points": points, "margin": margin, "box": box, "split": split, "statistics": statistics}
    plane = run.cached(round_plane, round=round, clients=clients, samples=samples, **options)
    return _labelled_minimum(run, plane, sweep, split, statistics, folds, samples)


@analysis(cost="evaluations")
def global_minimum(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    points: int = 21,
    margin: float | tuple[float, float] = 0.3,
    split: str = "test",
    statistics: Statistics | None = None,
    folds: int = FOLDS,
) -> xr.Dataset:
    """Minimum of the loss on the plane through three global models, as `round_minimum` for those of `global_plane`.

    Args:
        run: Run to analyse.
        rounds, points, margin, split, statistics: As in `global_plane`.
        folds: Number of parts of the samples.
    """
    _, sweep = global_sweep(run, rounds, points=points, margin=margin)
    options = {"points": points, "margin": margin, "split": split, "statistics": statistics}
    return _labelled_minimum(run, run.cached(global_plane, rounds=rounds, **options), sweep, split, statistics, folds)


def locate_minimum(
    run: Run,
    plane: xr.Dataset,
    sweep: Sweep,
    *,
    split: Split,
    samples: int | None = None,
    statistics: Statistics | None = None,
    folds: int = FOLDS,
) -> Minimum:
    """Fitted minimum of the surface `plane` of a sweep, its error including that of the samples.

    Args:
        split, samples, statistics: Those of the plane.
        folds: Number of parts of the samples that are left out in turn.

    Raises:
        ValueError: If there are fewer than two folds.
    """
    if folds < 2:
        raise ValueError(f"folds is {folds}; the samples are left out in 2 parts or more.")
    minimum = fitted_minimum(plane)
    selected = at_most(run.task.split(split), samples)
    number = len(selected)
    if minimum.fit is None or number < 2:
        return minimum
    fit = minimum.fit
    fold = torch.from_numpy(rng(0, "folds").permutation(number) % min(folds, number))
    window = replace(sweep, coords={name: sweep.coords[name][cells] for name, cells in fit.window.items()})
    nearby = evaluate_on(run, window, split=selected, metrics=("loss",), groups=fold, statistics=statistics)
    values = nearby.loss.transpose("group", *fit.names).values[:, fit.has_value]
    return add_sampling_error(minimum, values, np.bincount(fold.numpy()))


def _labelled_minimum(
    run: Run,
    plane: xr.Dataset,
    sweep: Sweep,
    split: str,
    statistics: Statistics | None,
    folds: int,
    samples: int | None = None,
) -> xr.Dataset:
    minimum = locate_minimum(run, plane, sweep, split=split, samples=samples, statistics=statistics, folds=folds)
    attrs = {"analysis": "plane_minimum", "source": "IMA paper, section 3.2", "split": split, "folds": folds}
    attrs |= {name: plane.attrs[name] for name in ("samples", "samples_of") if "samples_of" in plane.attrs}
    return label_minimum(minimum, plane).assign_attrs(attrs, round=plane.attrs["round"])

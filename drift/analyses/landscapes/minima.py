"""Where the minima of a run's planes are, with the errors of their fit and of the test samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.planes import client_sweep, global_plane, global_sweep, round_plane
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.batchnorm import Statistics
from landscape.surfaces.minimum import Minimum, add_sampling_error, fitted_minimum, label_minimum
from landscape.sweep.grid import Sweep

FOLDS = 20
"""Parts of the samples that are left out in turn."""


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
    statistics: Statistics | None = None,
    folds: int = FOLDS,
) -> xr.Dataset:
    """Minimum of the loss on the plane through three client models of one round, and its distance from their mean.

    The minimum is that of a quadratic fitted below the grid of `round_plane` with the same arguments. Its standard
    error is that of the fit and that of the samples, by the jackknife over `folds` random parts of them.

    Source: IMA paper, section 3.2 (the mean of the clients lies off the centre of their basin).

    Args:
        round, clients, points, margin, box, split, statistics: As `round_plane` takes them.
        folds: Parts of the samples.

    Returns:
        Dataset as `landscape.surfaces.minimum.label_minimum` returns it: the place is NaN where the minimum is not
        inside the grid, and minimum_reason says why.

    Raises:
        LookupError, ValueError: As `round_plane` does, and if there are fewer than two folds.
    """
    _, _, sweep = client_sweep(run, round, clients, points=points, margin=margin, box=box)
    how = {"points": points, "margin": margin, "box": box, "split": split, "statistics": statistics}
    found = run.cached(round_plane, round=round, clients=clients, **how)
    return _labelled(run, found, sweep, split, statistics, folds).assign_attrs(round=found.attrs["round"])


@analysis(cost="evaluations")
def global_minimum(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    split: str = "test",
    statistics: Statistics | None = None,
    folds: int = FOLDS,
) -> xr.Dataset:
    """Minimum of the loss on the plane through three global models, as `round_minimum` for those of `global_plane`."""
    _, sweep = global_sweep(run, rounds, points=points, margin=margin)
    how = {"points": points, "margin": margin, "split": split, "statistics": statistics}
    found = run.cached(global_plane, rounds=rounds, **how)
    return _labelled(run, found, sweep, split, statistics, folds).assign_attrs(round=found.attrs["round"])


def located(
    run: Run, found: xr.Dataset, sweep: Sweep, *, split: str, statistics: Statistics | None = None, folds: int = FOLDS
) -> Minimum:
    """Fitted minimum of the surface `found` of a sweep, its error including that of the samples.

    Raises:
        ValueError: If there are fewer than two folds.
    """
    if folds < 2:
        raise ValueError(f"folds is {folds}; the samples are left out in 2 parts or more.")
    minimum = fitted_minimum(found)
    samples = len(run.task.split(split))
    if minimum.fit is None or samples < 2:
        return minimum
    fit = minimum.fit
    part = torch.from_numpy(rng(0, "folds").permutation(samples) % min(folds, samples))
    window = replace(sweep, coords={name: sweep.coords[name][cells] for name, cells in fit.window.items()})
    around = evaluate_on(run, window, split, metrics=("loss",), groups=part, statistics=statistics)
    values = around.loss.transpose("group", *fit.names).values[:, fit.has_value]
    return add_sampling_error(minimum, values, np.bincount(part.numpy()))


def _labelled(
    run: Run, found: xr.Dataset, sweep: Sweep, split: str, statistics: Statistics | None, folds: int
) -> xr.Dataset:
    minimum = located(run, found, sweep, split=split, statistics=statistics, folds=folds)
    about = {"source": "IMA paper, section 3.2", "split": split, "folds": folds}
    return label_minimum(minimum, found).assign_attrs(analysis="plane_minimum", **about)

"""Surfaces on fine grids from a part of the samples: the rest is seen at a coarse lattice, and the error is stated."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.losses import group_weights
from landscape.model.task import Task, metric_units, split_name
from landscape.surfaces.interpolation import (
    interpolate,
    possible,
    trial_errors,
    values_of,
    with_errors,
    with_interpolated,
)
from landscape.surfaces.refinement import Refinement, require_plane
from landscape.surfaces.sampling_error import FEWEST, sample_folds
from landscape.surfaces.surface import surface
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import Sweep

FOLDS = 20
"""Parts of the subset that the stated standard error rests on."""


def sampled_surface(
    task: Task,
    sweep: Sweep,
    *,
    samples: int,
    seed: int = 0,
    tolerance: float = 0.01,
    metric: str = "loss",
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """A metric on the whole grid of a 2-D sweep, from all samples at 25 points and a random subset at others.

    Losses of one sample at neighbouring points are almost equal, so the mean over a subset errs by nearly the same
    amount at all of them. With s(p) the mean over the subset, L(a) that over all samples at the points a of a lattice
    of 5 x 5, and I the interpolation of values at these to the whole grid, the estimate is

        s(p) + I[L - s](p),

    exact at the lattice and unbiased over subsets at every point where s is evaluated: the difference estimator of
    survey sampling. s is evaluated on nested lattices until the next points and random ones are predicted to
    `tolerance`, and interpolated elsewhere, as by `interpolated_surface`. Samples are drawn with equal chances: chances
    in proportion to a sample's residual on the lattice gave larger errors (docs/reading-landscapes).

    Source: Särndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, section 6.3.

    Args:
        task, sweep: As `surface` takes them; the sweep is a full grid of two dimensions.
        samples: Size of the subset, from 20 to one less than all.
        seed: Of the draw of the subset.
        tolerance: Largest accepted error of interpolation, as a share of the range (of logarithms where positive).
        metric: "loss" or a metric of the task with one value per sample.
        evaluation, options: As `surface` takes them, but metrics, groups and precision.

    Returns:
        `<metric>` over the grid and its exact values mark_<metric> at the marks; `<metric>_subset_error` over the grid,
        the standard error that comes from the subset, 0 at the lattice; `interpolated`, True where not even the subset
        was evaluated; `<metric>_interpolation_error`, `_worst` and `_share` of these, as from `interpolated_surface`.
        The attribute `passes` counts passes of a sample through the model, `passes_of_all` those of the whole grid.

    Raises:
        ValueError: If the sweep is no full 2-D grid, or the subset has too few samples or not fewer than all.
    """
    refinement = Refinement(require_plane(sweep, tolerance), tolerance)
    evaluation = evaluation.but(**options).without("sampled_surface", "metrics", "groups", "precision")
    whole = task.split(evaluation.split)
    if not FOLDS <= samples < len(whole):
        raise ValueError(
            f"samples is {samples} of the {len(whole)} of {split_name(evaluation.split)}; give {FOLDS} or more, fewer "
            "than all: interpolated_surface evaluates all."
        )
    folds = sample_folds(samples, FOLDS)
    first = refinement.requested
    evaluation = evaluation.but(metrics=(metric,))
    exact = surface(task, replace(sweep, inside=first), evaluation=evaluation.part(0, 2))
    if len(values_of(exact, metric)) != 1:
        raise ValueError(f"{metric} has several values per sample; the error from a subset needs one.")
    part = whole[sample_rows(len(whole), samples, seed)]
    on_part = evaluation.but(split=part, groups=folds).part(1, 2)
    weights = group_weights(task.measures((metric,))[metric], part.targets, folds).numpy()
    counted = weights > 0  # of the others every sample is ignored
    if counted.sum() < FEWEST:
        raise ValueError(f"of samples={samples} next to none counts in {metric}; give more samples.")
    shares, unit = (weights / weights.sum())[counted][:, None, None], metric_units(task, metric)
    known: xr.Dataset | None = None
    while True:
        known = surface(task, replace(sweep, inside=refinement.requested), known=known, evaluation=on_part)
        in_folds = values_of(known, metric)[counted]
        mean = (in_folds * shares).sum(0, keepdims=True)
        correction = interpolate(values_of(exact, metric) - mean, first, logarithmic=False)

        def estimate(mask: np.ndarray, mean: np.ndarray = mean, correction: np.ndarray = correction) -> np.ndarray:
            return possible(interpolate(mean, mask) + correction, unit)

        requested, now = refinement.requested, estimate(refinement.requested)
        trials = [] if requested.all() else refinement.trials
        away, off = trial_errors(now, estimate, trials)
        if not refinement.advance(float(np.max(off, initial=0.0))):
            break
    estimated, error = now[0], _standard_error(in_folds, requested, first, shares)
    left = np.sqrt(1 - samples / len(whole))
    about = exact[metric].attrs
    dims = exact[metric].dims
    ds = exact.drop_vars(metric).assign({metric: (dims, estimated, about)})
    words = f"standard error of {about['long_name']} from the subset of samples"
    ds = ds.assign({f"{metric}_subset_error": (dims, error * left, {"long_name": words, "units": unit})})
    ds = with_errors(ds, metric, away, off)
    marks, lattice, points = len(sweep.marks), int(first.sum()), int(requested.sum())
    passes = (lattice + marks) * len(whole) + (points + marks) * samples
    return with_interpolated(ds, requested, trials).assign_attrs(
        samples=samples,
        samples_of=len(whole),
        seed=seed,
        tolerance=tolerance,
        lattice=lattice,
        passes=passes,
        passes_of_all=(estimated.size + marks) * len(whole),
    )


def sample_rows(total: int, samples: int, seed: int) -> Tensor:
    """Rows (samples,) of the subset among `total` samples, ascending, drawn with equal chances."""
    return torch.from_numpy(np.sort(np.random.default_rng(seed).permutation(total)[:samples]))


def _standard_error(folds: np.ndarray, requested: np.ndarray, first: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Standard error over the grid of the mean residual of the subset, from the residuals of its folds (F, *grid).

    The residual of a fold is its mean less what the lattice tells of it; at the lattice it is 0.
    """
    residual = interpolate(folds, requested) - interpolate(folds, first, logarithmic=False)
    mean = (residual * shares).sum(0)
    error = np.sqrt(((residual - mean) ** 2 * shares).sum(0) / (len(folds) - 1))
    error[first] = 0.0
    return error

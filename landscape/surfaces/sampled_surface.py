"""Surfaces on fine grids from a part of the samples: the rest is seen at a coarse lattice, and the error is stated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.losses import group_weights
from landscape.model.task import Task, metric_units, split_name
from landscape.surfaces.interpolation import (
    in_log,
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
    amount, or the same factor, at all of them. With s(p) the mean over the subset, L(a) that over all samples at the
    points a of a lattice of 5 x 5, and I the interpolation of values at these to the whole grid, the estimate is

        s(p) exp(I[log L - log s](p))   where L and s are positive at all evaluated points,
        s(p) + I[L - s](p)              elsewhere,

    exact at the lattice: the ratio and the difference estimator of survey sampling. The first never falls below 0; its
    bias is of the order of 1 / samples. The second is unbiased. s is evaluated on nested lattices until the next points
    and random ones are predicted to `tolerance`, and interpolated elsewhere, as by `interpolated_surface`. Samples are
    drawn with equal chances: chances in proportion to a sample's residual on the lattice gave larger errors
    (docs/reading-landscapes).

    The standard error comes from 20 folds of the subset. If few samples carry most of the loss, folds spread less than
    the estimate errs. So every other point of the lattice is also estimated from the others: where the error there, as
    root mean square in standard errors, is above 1, all stated errors are multiplied by it.

    Source: Särndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, section 6.3; Cochran 1977, Sampling
        Techniques, chapter 6.

    Args:
        task, sweep: As `surface` takes them; the sweep is a full grid of two dimensions.
        samples: Size of the subset, from 20 to one less than all.
        seed: Of the draw of the subset.
        tolerance: Largest accepted error of interpolation, as a share of the range (of logarithms where positive).
        metric: "loss" or a metric of the task with one value per sample.
        evaluation, options: As `surface` takes them, but metrics, groups and precision.

    Returns:
        `<metric>` over the grid and its exact values mark_<metric> at the marks; `<metric>_subset_error` over the grid,
        the standard error that comes from the subset, 0 at the lattice (Student's t with 19 degrees of freedom);
        `interpolated`, True where not even the subset was evaluated; `<metric>_interpolation_error`, `_worst` and
        `_share` of these, as from `interpolated_surface`. The attribute `passes` counts passes of a sample through the
        model, `passes_of_all` those of the whole grid; `<metric>_estimated_in` is "log" or "linear", and
        `<metric>_error_scale` the factor of the errors, 1 or more.

    Raises:
        ValueError: If the sweep is not a full 2-D grid, or the subset has too few samples or not fewer than all.
    """
    refinement = Refinement(require_plane(sweep, tolerance), tolerance)
    evaluation = evaluation.but(**options).without("sampled_surface", "metrics", "groups", "precision")
    every = task.split(evaluation.split)
    if not FOLDS <= samples < len(every):
        raise ValueError(
            f"samples is {samples} of the {len(every)} of {split_name(evaluation.split)}; give {FOLDS} or more, fewer "
            "than all: interpolated_surface evaluates all."
        )
    folds = sample_folds(samples, FOLDS)
    first = refinement.requested
    evaluation = evaluation.but(metrics=(metric,))
    exact = surface(task, replace(sweep, inside=first), evaluation=evaluation.stage(0, 2))
    if len(values_of(exact, metric)) != 1:
        raise ValueError(f"{metric} has several values per sample; the error from a subset needs one.")
    sampled = every[sample_rows(len(every), samples, seed)]
    on_sampled = evaluation.but(split=sampled, groups=folds).stage(1, 2)
    weights = group_weights(task.measures((metric,))[metric], sampled.targets, folds).numpy()
    counted = weights > 0  # of the others every sample is ignored
    if counted.sum() < FEWEST:
        raise ValueError(f"of samples={samples} almost none counts in {metric}; give more samples.")
    shares, unit = (weights / weights.sum())[counted][:, None, None], metric_units(task, metric)
    known: xr.Dataset | None = None
    while True:
        known = surface(task, replace(sweep, inside=refinement.requested), known=known, evaluation=on_sampled)
        requested, in_folds = refinement.requested, values_of(known, metric)[counted]
        estimate = _Estimate(values_of(exact, metric), in_folds, shares, first, requested, unit)
        trials = [] if requested.all() else refinement.trials
        away, off = trial_errors(estimate.values(requested), estimate.values, trials)
        if not refinement.advance(float(np.max(off, initial=0.0))):
            break
    left = np.sqrt(1 - samples / len(every))
    error, scale = left * estimate.error(), max(1.0, estimate.times_as_far / left)
    about = exact[metric].attrs
    dims = exact[metric].dims
    ds = exact.drop_vars(metric).assign({metric: (dims, estimate.values(requested)[0], about)})
    words = f"standard error of {about['long_name']} from the subset of samples"
    ds = ds.assign({f"{metric}_subset_error": (dims, error * scale, {"long_name": words, "units": unit})})
    ds = with_errors(ds, metric, away, off)
    marks, lattice, points = len(sweep.marks), int(first.sum()), int(requested.sum())
    passes = (lattice + marks) * len(every) + (points + marks) * samples
    return with_interpolated(ds, requested, trials).assign_attrs(
        samples=samples,
        samples_of=len(every),
        seed=seed,
        tolerance=tolerance,
        lattice=lattice,
        passes=passes,
        passes_of_all=(requested.size + marks) * len(every),
        **{f"{metric}_estimated_in": "log" if estimate.logarithmic else "linear", f"{metric}_error_scale": scale},
    )


def sample_rows(total: int, samples: int, seed: int) -> Tensor:
    """Rows (samples,) of the subset among `total` samples, ascending, drawn with equal chances."""
    return torch.from_numpy(np.sort(np.random.default_rng(seed).permutation(total)[:samples]))


@dataclass(frozen=True)
class _Estimate:
    """The metric over a grid from means over all samples at a lattice, and those of folds of the subset elsewhere.

    Args:
        exact: Means over all samples, shape (1, *grid); read at the lattice.
        folds: Means over each fold of the subset, shape (F, *grid); read at the evaluated points.
        shares: Of the folds in the mean over the subset, shape (F, 1, 1).
        lattice, evaluated: Masks over the grid; the lattice is a part of the evaluated points.
        unit: Of the metric.
    """

    exact: np.ndarray
    folds: np.ndarray
    shares: np.ndarray
    lattice: np.ndarray
    evaluated: np.ndarray
    unit: str

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean over the subset, shape (1, *grid)."""
        return (self.folds * self.shares).sum(0, keepdims=True)

    @cached_property
    def observed(self) -> np.ndarray:
        """Means of all samples and of the subset, where they were evaluated."""
        return np.concatenate([self.exact[:, self.lattice], self.mean[:, self.evaluated]], axis=1)

    @cached_property
    def logarithmic(self) -> bool:
        """Whether the estimate works with logarithms."""
        return in_log(self.observed)

    def values(self, evaluated: np.ndarray, lattice: np.ndarray | None = None) -> np.ndarray:
        """The estimate (1, *grid) from the subset at some points and all samples at a lattice, by default all of it."""
        to, back = (np.log, np.exp) if self.logarithmic else (np.asarray, np.asarray)
        at = self.lattice if lattice is None else lattice
        mean, difference = to(self.mean), to(self.exact) - to(self.mean)
        smooth = interpolate(mean, evaluated, logarithmic=False) + interpolate(difference, at, logarithmic=False)
        return possible(back(smooth), self.observed, self.unit)

    def error(self, lattice: np.ndarray | None = None) -> np.ndarray:
        """Standard error (*grid) from the spread of the folds: that of what the lattice does not tell of each of them.

        For logarithms it is that of the ratio to the mean, to first order.
        """
        at = self.lattice if lattice is None else lattice
        folds = self.folds / self.mean if self.logarithmic else self.folds
        residual = interpolate(folds, self.evaluated, logarithmic=False) - interpolate(folds, at, logarithmic=False)
        away = residual - (residual * self.shares).sum(0)
        error = np.sqrt((away**2 * self.shares).sum(0) / (len(folds) - 1))
        error[at] = 0.0
        return error * self.values(self.evaluated, at)[0] if self.logarithmic else error

    @cached_property
    def times_as_far(self) -> float:
        """Root mean square distance of the estimate from the truth in standard errors, at lattice points left out.

        Every other point of the lattice is estimated from the others, and these from it.
        """
        rows, columns = (np.unique(indices, return_inverse=True)[1] for indices in np.nonzero(self.lattice))
        far = []
        for parity in (0, 1):
            used = np.zeros_like(self.lattice)
            used[self.lattice] = (rows + columns) % 2 == parity
            left_out, error = self.lattice & ~used, self.error(used)
            away = (self.values(self.evaluated, used) - self.exact)[0, left_out]
            far += list((away[error[left_out] > 0] / error[left_out & (error > 0)]) ** 2)
        return float(np.sqrt(np.mean(far))) if far else 0.0

"""Loss barriers between two or several models, and the loss at random averages of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.geometry.lines import line
from landscape.geometry.simplex import points as simplex_points
from landscape.model.task import Task, metric_units
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled
from landscape.surfaces.basin import line_summary
from landscape.surfaces.surface import surface
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import axis, stack_models

BLOCK = 1 << 14
"""Parameters per model that are in memory in float64 at a time."""


@takes_models("a", "b")
def barrier(
    task: Task,
    a: Tensor,
    b: Tensor,
    *,
    points: int = 21,
    labels: Sequence[str] = ("a", "b"),
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Height of the loss barrier on the straight line between two models.

        ds = landscape.barrier(task, a, b)
        float(ds.barrier)  # in nats

    The barrier is the largest L((1 - t) a + t b) - ((1 - t) L(a) + t L(b)) for t from 0 to 1; near zero means that
    the models are linearly mode connected. Frankle et al. subtract the mean of the two losses instead of their
    interpolation, which differs when the models are not equally good.

    Source: IMA paper, section 3.2; Frankle et al. 2020, section 2.

    Args:
        task: Defines the loss.
        a, b: Models, shape (d,).
        points: Evaluations on the line, both ends included.
        labels: Names of the two models.
        buffers: Floating buffers of a and b, shape (2, b); by default the models' own.
        evaluation, options: Samples, batch statistics, workers and more: a `landscape.Evaluation`, and fields of it by
            name. Batch statistics are stated in the attributes; by default they are recomputed between the models.

    Returns:
        Dataset with loss (t,), its marks, and barrier (), in nats for cross-entropy.

    Raises:
        ValueError: If a and b differ in length.
    """
    sweep = line(a, b, points=points, low=0.0, high=1.0, labels=labels, buffers=buffers)
    evaluation = evaluation.but(**options).without("barrier", "metrics", "groups")
    ds = surface(task, sweep, evaluation=evaluation.but(metrics=("loss",)))
    return ds.assign(barrier=line_summary(ds).barrier).assign_attrs(analysis="barrier")


@takes_models("models")
def pairwise_barriers(
    task: Task,
    models: Sequence[Tensor] | Tensor,
    *,
    labels: Sequence[str] | None = None,
    points: int = 11,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Loss barriers, as in `barrier`, between all pairs of models.

        landscape.pairwise_barriers(task, [a, b, c]).barrier.values  # 3 x 3, in nats

    Source: Frankle et al. 2020, section 2 (the barrier); papers.md 3.5.

    Args:
        task: Model, loss and samples.
        models: Shape (m, d).
        labels: Names of the models; by default 1, 2, .. m.
        points: Evaluations on each line, both ends included.
        buffers: Floating buffers of the models, shape (m, b); by default the models' own.
        evaluation, options: As in `barrier`.

    Returns:
        Dataset with barrier, midpoint, the loss of the mean of two models minus the mean of their losses (negative
        where averaging helps), and distance in parameter space (mark, mark_other), all symmetric with zeros on the
        diagonal, and mark_loss (mark,); losses in nats.

    Raises:
        ValueError: If the models differ in length, or points is below 3.
    """
    basis = stack_models(list(models))
    if points < 3:
        raise ValueError(f"points is {points}; a barrier needs at least one point between the models: give 3 or more.")
    m, line_points = len(basis), axis(0.0, 1.0, points)[1:-1]
    t = np.union1d(line_points, 0.5)
    pairs = list(combinations(range(m), 2))
    identity = np.eye(m)
    rows = [identity, *(np.outer(1 - t, identity[i]) + np.outer(t, identity[j]) for i, j in pairs)]
    evaluation = evaluation.but(**options).without("pairwise_barriers", "metrics", "groups", "precision").between(task)
    evaluation = evaluation.but(metrics=("loss",))
    loss = evaluate(task, basis, np.concatenate(rows), buffers=buffers, evaluation=evaluation)["loss"].numpy()
    heights, halfway = (np.zeros((m, m)) for _ in range(2))
    for (i, j), between in zip(pairs, loss[m:].reshape(len(pairs), len(t)), strict=True):
        above = between - ((1 - t) * loss[i] + t * loss[j])
        heights[i, j] = heights[j, i] = np.maximum(0, above[np.isin(t, line_points)].max())
        halfway[i, j] = halfway[j, i] = above[t == 0.5].item()
    names = [str(index + 1) for index in range(m)] if labels is None else list(labels)
    units, both = metric_units(task, "loss"), ("mark", "mark_other")
    variables = {
        "barrier": (both, heights, "loss barrier", units),
        "midpoint": (both, halfway, "midpoint minus mean loss", units),
        "distance": (both, model_distances(basis), "distance of the models"),
        "mark_loss": ("mark", loss[:m], "loss at the mark", units),
    }
    about = {"analysis": "pairwise_barriers", "source": "Frankle et al. 2020, section 2"}
    attrs = {**about, "points": points, **evaluation.attrs(task, buffers)}
    return labelled(variables, attrs, {"mark": names, "mark_other": names})


def model_distances(models: Tensor) -> np.ndarray:
    """Distances (n, n) of models (n, d) in parameter space, in float64; exactly 0 between equal ones."""
    squares = torch.zeros(len(models), len(models), dtype=torch.float64)
    for block in models.split(BLOCK, dim=1):
        rows = block.double().cpu()
        squares += torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist").square()
    return squares.sqrt().numpy()


@takes_models("models")
def simplex_losses(
    task: Task,
    models: Sequence[Tensor] | Tensor,
    *,
    count: int = 64,
    seed: int = 0,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Metrics at random averages of models, uniform on their simplex.

    Source: this project; papers.md 3.5.

    Args:
        task: Model, loss and samples.
        models: Shape (m, d).
        count, seed: Of the random averages.
        buffers: Floating buffers of the models, shape (m, b); by default the models' own.
        evaluation, options: As in `barrier`, and the metrics.

    Returns:
        Dataset with each metric (value,) and, of the loss for example, loss_mean and loss_max ().

    Raises:
        ValueError: If the models differ in length, or no average is asked for.
    """
    basis = stack_models(list(models))
    if count < 1:
        raise ValueError(f"count is {count}; give the number of random averages, at least 1.")
    rows = simplex_points(basis, count, seed)
    evaluation = evaluation.but(**options).without("simplex_losses", "groups", "precision").between(task)
    values_by_metric = evaluate(task, basis, rows, buffers=buffers, evaluation=evaluation)
    variables: dict[str, Any] = {}
    for name, at_points in values_by_metric.items():
        values, units = at_points.numpy(), metric_units(task, name)
        variables[name] = "value", values, name, units
        variables[f"{name}_mean"] = (), values.mean(), f"mean {name} of random averages", units
        variables[f"{name}_max"] = (), values.max(), f"largest {name} of random averages", units
    about = {"analysis": "simplex_losses", "source": "this project"}
    return labelled(variables, {**about, "seed": seed, **evaluation.attrs(task, buffers)})

"""Averaging models against averaging fewer of them."""

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.model.task import Task, metric_units
from landscape.model.vectors import takes_models
from landscape.results.labelled import labelled
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import stack_models


@takes_models("models")
def subset_errors(
    task: Task,
    models: Tensor,
    weights: Tensor,
    *,
    subsets: int = 20,
    counts: Sequence[int] | None = None,
    seed: int = 0,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """Loss and error of the mean of a few models, by the number of averaged models.

    For each count up to `subsets` different subsets are drawn (all of them when there are no more); the weights are
    scaled to sum 1 within a subset.

    Source: IMA paper, Fig. 4; papers.md 3.2.6.

    Args:
        models: Shape (m, d).
        weights: Not negative, shape (m,).
        counts: Numbers of models to average; by default 1..m.
        buffers: Floating buffers of the models, shape (m, b); by default the models' own.
        evaluation, options: Samples, metrics, batch statistics and workers: a `landscape.Evaluation`, and fields of it
            by name. Batch statistics are stated in the attributes; by default they are recomputed for averaged models.

    Returns:
        Dataset with loss (models, draw) and each of the task's metrics, NaN where a count has fewer subsets than
        there are draws; the coordinate `models` is the count.

    Raises:
        ValueError: If shapes do not match, weights are not positive, or a count is not in 1..m.
    """
    models = models if isinstance(models, Tensor) else stack_models(models)
    shares = _shares(weights, models)
    _check_subsets(len(models), shares, counts, subsets)
    counts = list(range(1, len(models) + 1)) if counts is None else list(counts)
    subsets_by_count = {count: _subsets(len(models), count, subsets, seed) for count in counts}
    cells = [(row, draw) for row, count in enumerate(counts) for draw in range(len(subsets_by_count[count]))]
    coefficients = torch.zeros(len(cells), len(models), dtype=torch.float64)
    for point, (row, draw) in enumerate(cells):
        members = list(subsets_by_count[counts[row]][draw])
        coefficients[point, members] = shares[members] / shares[members].sum()
    evaluation = evaluation.but(**options).without("subset_errors", "groups", "precision").between(task)
    values_by_metric = evaluate(task, models, coefficients, buffers=buffers, evaluation=evaluation)
    variables = {
        name: (("models", "draw"), _spread(cells, values), f"{name} of the averaged model", metric_units(task, name))
        for name, values in values_by_metric.items()
    }
    about = {"analysis": "subset_errors", "source": "IMA paper, Fig. 4"}
    coords = {"models": ("models", counts, "models averaged")}
    return labelled(variables, {**about, "seed": seed, **evaluation.attrs(task, buffers)}, coords)


def _shares(weights: Tensor, models: Tensor) -> Tensor:
    weights = torch.as_tensor(weights).detach().double().cpu()
    if models.ndim != 2 or weights.shape != models.shape[:1]:
        raise ValueError(
            f"models have shape {tuple(models.shape)} and weights {tuple(weights.shape)}; they must be (m, d) and (m,)."
        )
    if not weights.isfinite().all() or weights.min() < 0 or weights.sum() <= 0:
        raise ValueError(f"weights are {weights.tolist()}; they must not be negative and one must be positive.")
    return weights / weights.sum()


def _check_subsets(m: int, shares: Tensor, counts: Sequence[int] | None, subsets: int) -> None:
    if subsets < 1:
        raise ValueError(f"subsets is {subsets}; at least one subset of each count is needed.")
    if shares.min() <= 0:
        raise ValueError("a weight is zero; leave that model out, it has no mean of its own.")
    if bad := [count for count in counts or () if not 1 <= count <= m]:
        raise ValueError(f"cannot average {bad[0]} of {m} models; counts lie in 1 to {m}.")


def _subsets(m: int, count: int, most: int, seed: int) -> list[tuple[int, ...]]:
    """At most `most` different subsets of 0..m-1 with `count` members, sorted; drawn by seed and count alone."""
    if comb(m, count) <= most:
        return list(combinations(range(m), count))
    generator = torch.Generator().manual_seed(seed * 1_000_003 + count)
    subsets: set[tuple[int, ...]] = set()
    while len(subsets) < most:
        subsets.add(tuple(sorted(torch.randperm(m, generator=generator)[:count].tolist())))
    return sorted(subsets)


def _spread(cells: list[tuple[int, int]], values: Tensor) -> np.ndarray:
    """Values of the points in a table (rows, draws), NaN elsewhere."""
    rows, draws = (np.array(index) for index in zip(*cells, strict=True))
    table = np.full((rows.max() + 1, draws.max() + 1), np.nan)
    table[rows, draws] = values.numpy()
    return table

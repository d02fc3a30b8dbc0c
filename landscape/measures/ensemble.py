"""Averaging models against averaging their outputs, and against averaging fewer of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Unpack

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from landscape.measures.predictions import class_probabilities
from landscape.model.batchnorm import recalibrate
from landscape.model.losses import batch_mean
from landscape.model.samples import Samples
from landscape.model.task import PerSample, Split, Task, metric_units
from landscape.model.vectors import takes_models
from landscape.plugins import unknown
from landscape.results.labelled import labelled
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import stack_models

OUTPUTS = ("logits", "probabilities")

_UNUSED = ("metrics", "groups", "precision", "workers", "progress", "block", "memory")


@takes_models("models")
def ensemble_gap(
    task: Task,
    models: Tensor,
    weights: Tensor,
    *,
    outputs: str = "logits",
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> xr.Dataset:
    """How far the weighted mean of the models' outputs (WENS) is from the output of their weighted mean.

    gap = mean over x of ||sum_k p_k f(w_k; x) - f(w; x)|| with w = sum_k p_k w_k, and p the weights scaled to sum 1;
    gap / D^2 with D = max_k ||w_k - w|| stays bounded as the models move together: the gap is of second order.

    Source: IMA paper, Lemma 1 and Eq. 4; papers.md 3.2.2.

    Args:
        models: Shape (m, d).
        weights: Not negative, shape (m,).
        outputs: What is averaged and compared: "logits" (the module's outputs as they are) or "probabilities" (their
            softmax). The ensemble's loss and metrics are those of the averaged outputs; averaged probabilities enter
            as their logarithm, as cross-entropy expects.
        buffers: Floating buffers of the models, shape (m, b); by default the models' own.
        evaluation, options: Samples and batch statistics: a `landscape.Evaluation`, and fields of it by name. Batch
            statistics are stated in the attributes; by default they are recomputed for the averaged model.

    Returns:
        Dataset of scalars: gap, distance (D), gap_ratio (gap / D^2, NaN where D is 0), and ensemble_loss, mean_loss
        and so on for each of the task's metrics, mean being the averaged model. Losses in nats, errors as fractions.

    Raises:
        ValueError: If shapes do not match, weights are negative or all zero, or `outputs` is unknown.
    """
    if outputs not in OUTPUTS:
        raise ValueError(unknown("kind of outputs", outputs, OUTPUTS))
    models = models if isinstance(models, Tensor) else stack_models(models)
    shares = _shares(weights, models)
    centre = _mean(models, shares)
    evaluation = evaluation.but(**options).without("ensemble_gap", *_UNUSED).between(task)
    split, fixed = evaluation.split, evaluation.calibration_of(task, buffers)
    own = None if evaluation.statistics == "task" else buffers
    *model_buffers, centre_buffers = _buffers(task, [*models, centre], shares, own, fixed)
    ensemble = sum(
        share * _outputs(task, model, split, trained, outputs)
        for share, model, trained in zip(shares.tolist(), models, model_buffers, strict=True)
    )
    mean = _outputs(task, centre, split, centre_buffers, outputs)
    gap = (ensemble - mean).flatten(1).norm(dim=1).mean().item()
    distance = (models.double() - centre.double()).norm(dim=1).max().item()
    targets = task.split(split).targets.to(models.device)
    values_by_name = {
        f"{name}_{metric}": _value(function, values, targets, outputs)
        for metric, function in task.measures(("loss", *task.metrics)).items()
        for name, values in {"ensemble": ensemble, "mean": mean}.items()
    }
    values_by_name |= {"gap": gap, "distance": distance, "gap_ratio": gap / distance**2 if distance > 0 else np.nan}
    labels = {"gap": "mean ||f_WENS - f_mean||", "distance": "largest ||w_k - w||", "gap_ratio": "gap / distance^2"}
    variables = {
        name: ((), value, labels.get(name, name.replace("_", " ")), metric_units(task, name.partition("_")[2]))
        for name, value in values_by_name.items()
    }
    about = {"analysis": "ensemble_gap", "source": "IMA paper, Lemma 1", "outputs": outputs}
    return labelled(variables, {**about, **evaluation.attrs(task, buffers)})


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
        evaluation, options: As in `ensemble_gap`, and the metrics and workers.

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


def _mean(rows: Tensor, shares: Tensor) -> Tensor:
    return (shares.to(rows.device) @ rows.detach().double()).to(rows)


def _buffers(
    task: Task, models: list[Tensor], shares: Tensor, buffers: Tensor | None, fixed: Samples | None
) -> list[Tensor | None]:
    """Floating buffers of models and of their mean (last), with statistics of `fixed` for untrained ones."""
    model_buffers = [None] * len(models) if buffers is None else [*buffers, _mean(buffers, shares)]
    if fixed is None:
        return model_buffers
    trained = 0 if buffers is None else len(buffers) + int(shares.max() == 1)  # a mean of one is that model
    fresh = [recalibrate(task, *pair, fixed) for pair in zip(models[trained:], model_buffers[trained:], strict=True)]
    return [*model_buffers[:trained], *fresh]


def _outputs(task: Task, theta: Tensor, split: Split, buffers: Tensor | None, kind: str) -> Tensor:
    own = task.buffers.to(theta) if buffers is None else buffers  # None: the statistics of the task are asked for
    values = task.outputs(theta.detach(), split, buffers=own).double()
    return class_probabilities(values, task.split(split).targets) if kind == "probabilities" else values


def _value(function: PerSample, outputs: Tensor, targets: Tensor, kind: str) -> float:
    outputs = outputs.clamp_min(torch.finfo(outputs.dtype).tiny).log() if kind == "probabilities" else outputs
    return batch_mean(function, outputs.double(), targets).item()


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

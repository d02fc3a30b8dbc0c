"""Scaling of the gap between WENS and FMA with the distance of the clients to their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.decomposition.client_models import Rows, read_models
from drift.analyses.decomposition.factors import Outputs, average, model_outputs
from drift.analyses.per_round import ABOUT, DIMS, result, selected_rounds, stack_rows
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.samples import Samples
from landscape.results.stated import state

SCALES = (0.125, 0.25, 0.5, 1.0)

ROUNDING = 1e-11
"""Fraction of the outputs' size below which a gap is rounding in float64 and has no slope."""


@analysis("round", "scale", cost="training")
def gap_scaling(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    scales: Sequence[float] = SCALES,
    samples: int = 500,
    split: str = "test",
    outputs: Outputs = "logits",
) -> xr.Dataset:
    """Gap between WENS and FMA with the clients moved towards their mean, and its slope in a log-log plot.

    gap(s) = mean over x of |sum_k p_k f(w + s (w_k - w); x) - f(w; x)| with w = sum_k p_k w_k, buffers alike. Lemma 1
    says gap = O(locality^2), and s scales the locality: the slope is 2 as s goes to 0 where f is smooth in w, and
    the gap is 0 where f is linear in w. With ReLU the slope is somewhat below 2, as units switch between the clients.

    Computed in float64, as small gaps are below the rounding of float32.

    Source: Zhou et al. 2024 (IMA), lemma 1; papers.md 3.2.2.

    Args:
        run: Run to analyse.
        rounds: Rounds, negative ones from the last that kept its clients; by default at most ten of them.
        scales: s, two or more, positive; 1 stands for the recorded clients.
        samples: Number of random samples of the split, the same in every round.
        split: Split of the task.
        outputs: "logits" (the model's outputs as they are) or "probabilities" (their softmax).

    Returns:
        Dataset with gap (round, scale), slope (round,), the least-squares slope of log gap over log s, slope_smallest
        (round,), that between the two smallest scales, and locality (round,), the distance of the farthest client.
        Slopes are NaN where there is no gap; rounds in which every client diverged are left out.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
        ValueError: If a scale is not positive, or there are fewer than two.
    """
    _check(scales, samples, outputs)
    ordered, split_samples = sorted(scales), run.task.split(split)
    count = min(samples, len(split_samples))
    numbers = np.sort(rng(run.experiment.seed, "gap", split).permutation(len(split_samples))[:count])
    inputs = split_samples[torch.from_numpy(numbers)]
    indices = selected_rounds(run, "clients", rounds, _ROUNDS)
    rows: dict[int, dict[str, Any]] = {}
    for index in run.context.track(indices):
        record, models = read_models(run, index)
        if len(record.ids):
            rows[index] = _gap_and_slopes(run, models, record.shares, ordered, inputs, outputs)
    if not rows:
        raise LookupError(f"run {run.name} has no round with client models; train with --set keep.clients=all.")
    coords: dict[str, list] = {"round": list(rows), "scale": ordered}
    variables = stack_rows(list(rows.values()), ABOUT["gap_scaling"], coords, DIMS["gap_scaling"])
    attrs = {"source": "Zhou et al. 2024, lemma 1", "outputs": outputs, "split": split, "samples": count}
    return result(variables, ABOUT["gap_scaling"], coords, analysis="gap_scaling", **attrs)


def gap_scaling_effort(run: Run, **options: Any) -> Effort:
    """Effort of `gap_scaling` with the same options."""
    values = complete_options(gap_scaling, run, options)
    count, scales = min(values.samples, len(run.task.split(values.split))), len(values.scales)
    rounds = len(selected_rounds(run, "clients", values.rounds, _ROUNDS))
    models = rounds * (scales * run.experiment.clients.per_round + 1)
    memory = 8 * (count * scales * len(run.dataset.class_names) + 6 * run.task.layout.size)
    return effort(run, trainings=0, forwards=models * count, memory=memory)


_ROUNDS = 10
"""Default number of rounds."""


def _check(scales: Sequence[float], samples: int, outputs: str) -> None:
    if len(set(scales)) < 2 or min(scales) <= 0:
        raise ValueError(f"scales are {list(scales)}; a slope needs two different positive ones or more.")
    if samples < 1:
        raise ValueError(f"samples is {samples}; give at least 1.")


def _gap_and_slopes(
    run: Run, models: Rows, weights: Tensor, scales: Sequence[float], samples: Samples, outputs: Outputs
) -> dict[str, Any]:
    """Gap at every scale, slopes and locality of a round, from its models one by one."""
    usable = [(row, weight) for row, weight in enumerate(weights.tolist()) if weight > 0]
    theta, buffers = average(models, weights)
    flat = run.task.flat(theta)
    state({"statistics": "averaged"} if flat.layout.buffers else {})
    mean = model_outputs(flat, theta, buffers, samples, outputs)
    ensemble = torch.zeros(len(scales), *mean.shape, dtype=torch.float64)
    locality = 0.0
    for row, weight in usable:
        model, statistics = models(row)
        offset, buffer_offset = model.double() - theta, statistics.double() - buffers
        locality = max(locality, float(offset.norm()))
        for index, scale in enumerate(scales):
            ensemble[index] += weight * model_outputs(
                flat, theta + scale * offset, buffers + scale * buffer_offset, samples, outputs
            )
    gap = (ensemble - mean).flatten(2).norm(dim=2).mean(1).numpy()
    smooth = bool((gap > ROUNDING * float(mean.flatten(1).norm(dim=1).mean())).all())
    x, y = np.log(scales), np.log(gap) if smooth else np.full(len(gap), np.nan)
    slope = float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean())))
    return {"gap": gap, "slope": slope, "slope_smallest": float((y[1] - y[0]) / (x[1] - x[0])), "locality": locality}

"""How the distance between averaging models and averaging their outputs shrinks with the clients' spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.cost_estimate import Effort, effort
from drift.analyses.decomposition.client_models import Rows, recorded
from drift.analyses.decomposition.factors import Outputs, model_outputs
from drift.analyses.per_round import evenly_spaced, resolve_round
from drift.config.cohort_weights import cohort_weights
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.measures.ensemble import OUTPUTS
from landscape.model.samples import Samples
from landscape.plugins import unknown
from landscape.results.progress import with_progress

SCALES = (0.125, 0.25, 0.5, 1.0)

ROUNDING = 1e-11
"""Gaps below this part of the outputs' size are rounding in float64 and have no slope."""


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
    """Gap between WENS and FMA with the clients drawn towards their mean, and its slope in a log-log plot.

    gap(s) = mean over x of |sum_k p_k f(w + s (w_k - w); x) - f(w; x)| with w = sum_k p_k w_k, buffers alike. Lemma 1
    says gap = O(locality^2), and s scales the locality: the slope is 2 as s goes to 0 where f is smooth in w, and
    there is no gap where f is linear in w. With ReLU it stays somewhat below 2, as units switch between the clients.

    Computed in float64 in any case, as small gaps drown in float32.

    Source: Zhou et al. 2024 (IMA), lemma 1; methods.md 3.2.2.

    Args:
        rounds: Round indices, negative ones from the last that kept clients; when absent, at most ten of them.
        scales: s, two or more, positive; 1 is the recorded clients.
        samples: How many samples of the split are drawn, the same in every round.
        split: Split of the task.
        outputs: "logits" (the model's outputs as they are) or "probabilities" (their softmax).

    Returns:
        Dataset with gap (round, scale), slope (round,), the least-squares slope of log gap over log s, slope_smallest
        (round,), that between the two smallest scales, and locality (round,), the distance of the farthest client.
        Slopes are NaN where there is no gap; rounds in which every client diverged are left out.

    Raises:
        LookupError: If no round, or one of those named, kept its clients.
        ValueError: If a scale is not positive, there are fewer than two, or `outputs` is unknown.
    """
    _check(scales, samples, outputs)
    ordered, split_samples = sorted(scales), run.task.split(split)
    count = min(samples, len(split_samples))
    numbers = np.sort(rng(run.experiment.seed, "gap", split).permutation(len(split_samples))[:count])
    held = split_samples[torch.from_numpy(numbers)]
    indices = [resolve_round(run, index, "clients") for index in rounds] if rounds is not None else _default(run)
    rows: dict[int, dict[str, Any]] = {}
    for index in with_progress(indices, run.context.progress):
        record, models = recorded(run, index)
        if len(record.ids):
            rows[index] = _measured(run, models, cohort_weights(run.experiment, record.sizes), ordered, held, outputs)
    if not rows:
        raise LookupError(f"run {run.name} has no round with client models; train with --set keep.clients=all.")
    found = xr.Dataset(
        {
            name: (dims, np.array([row[name] for row in rows.values()]), {"long_name": label, "units": "1"})
            for name, (dims, label) in _ABOUT.items()
        },
        coords={
            "round": ("round", list(rows), {"long_name": "round", "units": "1"}),
            "scale": ("scale", ordered, {"long_name": "part of the clients' distance to their mean", "units": "1"}),
        },
    )
    about = {"analysis": "gap_scaling", "source": "Zhou et al. 2024, lemma 1", "outputs": outputs, "split": split}
    return found.assign_attrs(about, samples=count)


def gap_scaling_effort(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    scales: Sequence[float] = SCALES,
    samples: int = 500,
    split: str = "test",
    **_: Any,
) -> Effort:
    """What `gap_scaling` with these options costs."""
    used = min(samples, len(run.task.split(split)))
    count = len(rounds if rounds is not None else _default(run))
    models = count * (len(scales) * run.experiment.clients.per_round + 1)
    memory = 8 * (used * len(scales) * len(run.dataset.classes) + 6 * run.task.layout.size)
    return effort(run, trainings=0, forwards=models * used, memory=memory)


_ABOUT = {
    "gap": (("round", "scale"), "distance between the outputs of WENS and FMA"),
    "slope": (("round",), "slope of log gap over log scale"),
    "slope_smallest": (("round",), "slope between the two smallest scales"),
    "locality": (("round",), "largest distance of a client to the mean"),
}


def _check(scales: Sequence[float], samples: int, outputs: str) -> None:
    if len(set(scales)) < 2 or min(scales) <= 0:
        raise ValueError(f"scales are {list(scales)}; a slope needs two different positive ones or more.")
    if samples < 1:
        raise ValueError(f"samples is {samples}; give at least 1.")
    if outputs not in OUTPUTS:
        raise ValueError(unknown("kind of outputs", outputs, OUTPUTS))


def _default(run: Run) -> list[int]:
    return evenly_spaced(run.kept("clients"), 10)


def _measured(
    run: Run, models: Rows, weights: Tensor, scales: Sequence[float], samples: Samples, outputs: Outputs
) -> dict[str, Any]:
    """Gap at every scale, slopes and locality of a round, from its models one by one."""
    some = [(row, weight) for row, weight in enumerate(weights.tolist()) if weight > 0]
    theta, buffers = (torch.zeros_like(part, dtype=torch.float64) for part in models(0))
    for row, weight in some:
        for centre, part in zip((theta, buffers), models(row), strict=True):
            centre.add_(part, alpha=weight)
    flat = run.task.flat(theta)
    mean = model_outputs(flat, theta, buffers, samples, outputs)
    together = torch.zeros(len(scales), *mean.shape, dtype=torch.float64)
    locality = 0.0
    for row, weight in some:
        away, apart = (part.double() - centre for part, centre in zip(models(row), (theta, buffers), strict=True))
        locality = max(locality, float(away.norm()))
        for place, scale in enumerate(scales):
            together[place] += weight * model_outputs(
                flat, theta + scale * away, buffers + scale * apart, samples, outputs
            )
    gap = (together - mean).flatten(2).norm(dim=2).mean(1).numpy()
    smooth = bool((gap > ROUNDING * float(mean.flatten(1).norm(dim=1).mean())).all())
    x, y = np.log(scales), np.log(gap) if smooth else np.full(len(gap), np.nan)
    slope = float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean())))
    smallest = float((y[1] - y[0]) / (x[1] - x[0]))
    return {"gap": gap, "slope": slope, "slope_smallest": smallest, "locality": locality}

"""Variance of client models by the neural tangent kernel, and its expression by the MMD of their data (theorem 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.decomposition.evaluation_samples import Union
from drift.analyses.per_round import ABOUT, DIMS, result, selected_rounds
from drift.config.random_keys import rng
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.ntk import MEMORY, ntk, variance_by_mmd


@analysis("round", "client", cost="gradients")
def ntk_variance(
    run: Run, *, rounds: Sequence[int] | None = None, points: int = 200, union: Union = "cohort", memory: int = MEMORY
) -> xr.Dataset:
    """Variance of each client's model by the tangent kernel, and its expression by the MMD of the data.

    variance is the posterior variance of a Gaussian process with the kernel K, trained on points of the client and
    averaged over points of all data; expression is theorem 2's n/(2 lambda) MMD^2 + ..., with the kernel K^2 and
    U-statistics, as `landscape.curvature.ntk.variance_by_mmd` writes them. K is the tangent kernel of the logits,
    averaged over
    classes, at the model that the clients of the round received. Theorem 2 assumes that K on a client's points is a
    multiple of the identity; off_diagonal (0 if so) and diagonal_spread measure the deviation. Where off_diagonal is
    near 1, as for most networks, the expression can be far off and even negative. Both sides are for the sampled
    points: n is their number, not the number of the client's samples.

    Source: Zhou et al. 2024 (IMA), theorem 2; papers.md 3.2.3.

    Args:
        run: Run to analyse.
        rounds: Round indices, negative ones from the last that kept the model; by default at most three of them.
        points: Largest number of points per client, and of all data; the same in every round.
        union: Whether "all data" are those of the cohort, or of all clients.
        memory: Bytes of gradients in memory.

    Returns:
        Dataset with variance, expression, mmd2, diagonal (lambda), diagonal_spread, off_diagonal (both as fractions of
        lambda) and points (round, client), data_diagonal and data_square (round,), the means of K(x, x) and, over
        pairs, of K^2 in all data. NaN for clients outside the cohort or without samples; rounds in which every client
        diverged are left out.

    Raises:
        LookupError: If no round, or one of those named, kept the model that clients received.
        ValueError: If there are fewer than two points.
    """
    if points < 2:
        raise ValueError(f"points is {points}; pairs need at least 2.")
    indices = selected_rounds(run, "globals", rounds, _ROUNDS)
    records = {index: record for index in indices if len((record := run.round(index)).ids)}
    if not records:
        raise LookupError(f"run {run.name} has no round with the model its clients received; set keep.globals=all.")
    shape = (len(records), run.experiment.clients.number)
    dims = DIMS["ntk_variance"]
    table = {name: np.full(shape, np.nan) for name in dims if dims[name]}
    rows = {name: np.full(len(records), np.nan) for name in dims if not dims[name]}
    train, all_rounds = run.task.samples["train"], list(records)
    jobs = [(index, client) for index, record in records.items() for client in record.ids.tolist()]
    for index, client in run.context.track(jobs):
        record, row = records[index], all_rounds.index(index)
        mine = _points(run, [client], points)
        if not len(mine):
            continue
        union_ids = record.ids.tolist() if union == "cohort" else range(shape[1])
        union_ids = [other for other in union_ids if len(run.parts[other])]
        numbers = torch.from_numpy(np.concatenate([mine, _points(run, union_ids, points)]))
        kernel = ntk(run.task, record.kept("start"), train[numbers], memory=memory)
        n = len(mine)
        sides = variance_by_mmd(kernel[:n, :n], kernel[:n, n:], kernel[n:, n:]) | {"points": float(n)}
        for name, values in table.items():
            values[row, client] = sides[name]
        for name, column in rows.items():
            column[row] = sides[name]
    variables = {name: (("round", "client"), values) for name, values in table.items()}
    return result(
        {**variables, **{name: ("round", values) for name, values in rows.items()}},
        ABOUT["ntk_variance"],
        {"round": all_rounds, "client": range(shape[1])},
        analysis="ntk_variance",
        source="Zhou et al. 2024, theorem 2",
        union=union,
    )


def ntk_variance_effort(run: Run, **options: Any) -> Effort:
    """Effort of `ntk_variance` with the same options; a gradient counts as three forward passes."""
    values = complete_options(ntk_variance, run, options)
    rounds, points = selected_rounds(run, "globals", values.rounds, _ROUNDS), values.points
    blocks = max(1, -(-2 * points * 2 * run.task.layout.size * 4 // values.memory))
    gradients = len(rounds) * run.experiment.clients.per_round * 2 * points * len(run.dataset.class_names)
    memory = min(2 * points * (run.task.layout.size * 4 + 2 * points * 8), values.memory)
    return effort(run, trainings=0, forwards=3 * gradients * (blocks + 1) // 2, memory=memory)


_ROUNDS = 3
"""Default number of rounds."""


def _points(run: Run, clients: list[int], most: int) -> np.ndarray:
    """Sample numbers of at most `most` points of the data of some clients."""
    numbers = np.concatenate([run.parts[client] for client in clients])
    return rng(run.experiment.seed, "ntk", *clients).permutation(numbers)[:most]

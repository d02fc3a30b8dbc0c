"""Aggregation weights of three clients: the loss over all of them, and those with the lowest loss per round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.sweeps import round_clients, rows_of
from drift.analyses.per_round import ABOUT, result, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.geometry.simplex import simplex
from landscape.model.task import metric_units
from landscape.results.netcdf_files import Partial
from landscape.results.progress import share
from landscape.sweep.grid import Sweep, make_mark


@analysis("mark", "alpha", "beta", cost="evaluations")
def weight_simplex(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    step: float = 0.05,
    extend: float = 0.0,
    split: str = "test",
    samples: int | None = None,
    folds: int = 0,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error of every weighted average of three client models of one round.

    alpha, beta and 1 - alpha - beta are the weights of the first, second and third client.

    Source: FedLAW paper, Fig. 12.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three with samples by default.
        step: Of the weights, one over a whole number.
        extend: How far below 0 weights may go, such as 0.2; rounded down to whole steps.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        samples, folds: As in `round_plane`.
        partial: Unfinished result to resume.

    Returns:
        Surface over alpha and beta, NaN outside the triangle; the marks are the clients, "mean", and "by size", the
        average by the data sizes that FedAvg takes.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients, or the step does not divide 1.
    """
    record, ids, _ = round_clients(run, round, clients, 3)
    sweep = simplex_of_clients(run, record, ids, step=step, extend=extend)
    about = {name: (f"weight of client {client}", "1") for name, client in zip(("alpha", "beta"), ids, strict=False)}
    dataset = evaluate_on(run, sweep, partial, split=split, samples=samples, folds=folds)
    return result(dataset, about, analysis="weight_simplex", round=record.index)


def simplex_of_clients(run: Run, record: Round, clients: Sequence[int], *, step: float, extend: float = 0.0) -> Sweep:
    """All weighted averages of three client models of a round; the last mark is their average "by size".

    Raises:
        ValueError: If the cohort does not hold three such clients, or the step does not divide 1.
    """
    rows = rows_of(record, clients)
    labels = [f"client {client}" for client in clients]
    sweep = simplex(record.kept("clients")[rows], step=step, extend=extend, labels=labels)
    shares = run.experiment.cohort_weights(record.sizes)[rows].numpy()
    weights = (shares / shares.sum() if shares.sum() > 0 else np.full(3, 1 / 3)).tolist()
    return replace(sweep, marks=(*sweep.marks, make_mark("by size", weights[:2], weights)))


@analysis("round", "client", "client_other", cost="evaluations")
def best_weights(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    clients: Sequence[int] | None = None,
    step: float = 0.02,
    extend: float = 0.0,
    split: str = "test",
) -> xr.Dataset:
    """Weights of three clients at which the loss is lowest, over rounds, and their mean and covariance.

    In every round all sum_k lambda_k w_k with sum_k lambda_k = 1 on a barycentric grid are evaluated; `weight_simplex`
    computes the whole landscape of one round.

    Source: Li et al. 2023, appendix B, figure 12 (three clients, 100 rounds of FedAvg); mean and covariance of the
    optima: papers.md 3.3.

    Args:
        run: Run to analyse.
        rounds: Rounds that kept these clients; by default all of them.
        clients: Ids of three clients; by default the three of the last kept cohort that most cohorts contain.
        step: Of the weights, one over a whole number.
        extend: How far below 0 weights may go, such as 0.2; rounded down to whole steps.
        split: Samples that the loss is averaged over.

    Returns:
        Dataset with best_weight (round, client), those at the lowest grid point; size_weight (round, client), those by
        data size, which FedAvg takes; best_loss and size_loss (round,) in nats there; mean (client,) and covariance
        (client, client_other) of best_weight over rounds (n - 1; NaN below two). A round of `rounds` without one
        of the clients is NaN.

    Raises:
        LookupError: If no round kept three clients.
        ValueError: If no round holds all of these clients, or the step does not divide 1.
    """
    ids, indices = shared_rounds(run, rounds, clients)
    weights = {name: np.full((len(indices), 3), np.nan) for name in ("best_weight", "size_weight")}
    losses = {name: np.full(len(indices), np.nan) for name in ("best_loss", "size_loss")}
    for row, index in enumerate(indices):
        record = run.round(index)
        if not set(ids) <= set(record.ids.tolist()):
            continue
        sweep = simplex_of_clients(run, record, ids, step=step, extend=extend)
        progress = share(run.context.progress, row, len(indices))
        grid = evaluate_on(run, sweep, split=split, metrics=("loss",), progress=progress)
        weights["size_weight"][row] = sweep.mark_coefficients[-1]
        losses["size_loss"][row] = float(grid.mark_loss[-1])
        if bool(grid.loss.notnull().any()):
            lowest = int(np.nanargmin(grid.loss.values))
            weights["best_weight"][row] = sweep.coefficients[lowest]
            losses["best_loss"][row] = float(grid.loss.values.ravel()[lowest])
    best = weights["best_weight"]
    finite = best[np.isfinite(best).all(1)]
    variables = {
        **{name: (("round", "client"), table) for name, table in weights.items()},
        **{name: ("round", column) for name, column in losses.items()},
        "mean": ("client", finite.mean(0) if len(finite) else np.full(3, np.nan)),
        "covariance": (
            ("client", "client_other"),
            np.cov(finite, rowvar=False) if len(finite) > 1 else np.full((3, 3), np.nan),
        ),
    }
    nats = metric_units(run.task, "loss")
    about = {**ABOUT["weight_simplex"], "best_loss": (_BEST, nats), "size_loss": (_SIZE, nats)}
    coords = {"round": indices, "client": ids, "client_other": ids}
    source = "Li et al. 2023, figure 12"
    return result(variables, about, coords, analysis="best_weights", source=source, step=step, extend=extend)


def best_weights_effort(run: Run, **options: Any) -> Effort:
    """Effort of `best_weights` with the same options."""
    values = complete_options(best_weights, run, options)
    _, indices = shared_rounds(run, values.rounds, values.clients)
    side = round(1 / values.step) + 3 * int(values.extend / values.step + 1e-9)
    points = (side + 1) * (side + 2) // 2 + 5
    forwards = len(indices) * points * len(run.task.split(values.split))
    return effort(run, trainings=0, forwards=forwards, memory=4 * (_AT_ONCE + 3) * run.layout.size)


def shared_rounds(
    run: Run, rounds: Sequence[int] | None = None, clients: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Three clients, and the rounds that `best_weights` evaluates.

    Raises:
        LookupError, ValueError: As `best_weights`.
    """
    indices = selected_rounds(run, "clients", rounds, None)
    cohorts = {index: run.round(index).ids.tolist() for index in indices}
    usable = [cohort for cohort in cohorts.values() if len(cohort) >= 3]
    if not usable:
        raise LookupError(
            f"run {run.name} kept no round with three clients; train with --set keep.clients=all "
            "--set clients.per_round=3 or more."
        )
    ids = most_frequent_three(usable) if clients is None else list(clients)
    if len(set(ids)) != 3:
        raise ValueError(f"clients are {ids}; a simplex has three different ones.")
    shared = [index for index, cohort in cohorts.items() if set(ids) <= set(cohort)]
    if not shared:
        raise ValueError(f"no round of run {run.name} kept clients {ids} together; the last kept {usable[-1]}.")
    return ids, indices if rounds is not None else shared


def most_frequent_three(cohorts: Sequence[Sequence[int]]) -> list[int]:
    """The three clients of the last cohort that most cohorts contain; the first such three."""
    last = list(cohorts[-1])
    shared = [[client for client in last if client in set(cohort)] for cohort in cohorts]
    if all(len(clients) == len(last) for clients in shared):
        return last[:3]
    times: Counter[tuple[int, ...]] = Counter(three for clients in shared for three in combinations(clients, 3))
    return list(max(combinations(last, 3), key=lambda three: times[tuple(three)]))


_AT_ONCE = 64
"""Approximate number of models that a sweep has in memory."""

_BEST, _SIZE = "lowest loss on the simplex", "loss under the weights by size"

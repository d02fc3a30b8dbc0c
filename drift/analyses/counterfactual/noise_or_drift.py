"""How much of the clients' updates is signal, difference of their data, drift of local steps, and minibatch noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.counterfactual.noise_replays import (
    Replayed,
    ReplayPlan,
    inner_products,
    plan_replays,
    replay,
    require_plain_training,
)
from drift.analyses.counterfactual.noise_terms import CAUSES, LEAST, MEAN, PAIRS, PARTS, SHARE, SQUARE, equal_steps
from drift.analyses.per_round import ABOUT, DIMS, ROUNDS, result, selected_rounds, stack_rows
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.simulation.retrain import share_jobs

Who = Literal["cohort", "all"] | int


@analysis("round", "fraction", "part", "cause", "pair", cost="training")
def noise_or_drift(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    clients: Who = "cohort",
    replays: int = 3,
    fractions: Sequence[float] = (1.0,),
    workers: int = 1,
) -> xr.Dataset:
    """Shares of signal, data, drift and minibatch noise in clients' updates, and the cohort at which each dominates.

    With the update U_k of client k, its expectation M_k over the order of minibatches (and dropout), its frozen update
    F_k (`frozen_update`: the full gradient at the start in every step) and weights q_k of all K clients:

        U_k = a F + a (F_k - F) + (M_k - a F_k) + (U_k - M_k)        F = sum_k q_k F_k
              signal   data         drift           noise

    a = sum_k q_k <M_k, F_k> / sum_k q_k |F_k|^2 is the fit of `counterfactual`. With it the mean squares of the four
    parts, weighted by q_k, sum to that of the updates; drift is all of M_k that a multiple of the frozen update is not.
    With equal weights, the mean update of a random cohort of m clients is a F plus an error of mean square

        |M - a F|^2  +  T^2 (1/m - 1/K)  +  N/m        M = sum_k q_k M_k
        drift           sampling            noise

    The expectation is never computed: squares of it are products of different replays of a client, so that R replays
    leave no bias of order 1/R. Such an estimate can be negative. Intervals of 95 % are by the jackknife over clients
    and, where a client has three replays, over replays within clients. Definitions, limits and coverage are in
    docs/noise-or-drift.md.

    Source: this project; Cochran 1977, chapters 2 and 10, for samples of clients; McCandlish et al. 2018 for the size
    at which noise equals signal.

    Args:
        run: A run whose clients train by SGD from the start on their loss alone, such as FedAvg, FedAvgM, FedAdam,
            FedNova, IMA, and FedProx, whose pull is zero at the start.
        rounds: Rounds that kept their start; negative count from the last. By default 5, evenly spaced.
        clients: "cohort", as a random sample of all K; a number of its clients, 3 or more, drawn at random, which takes
            less time and gives wider intervals; or "all" K clients.
        replays: R, trainings of each client, 2 or more; the recorded one is the first where its exact bits were kept.
        fractions: Of the local steps, after which the updates are compared; ascending, the last is 1. The record has no
            model before the end, so that with more than one fraction all R trainings are new.
        workers: Number of processes for the trainings.

    Returns:
        Dataset; *_low and *_high are bounds of intervals. Over round, fraction and part: square (mean square) and
        share of it. Over round, fraction and cause: mean_square, for drift and signal of the mean update, T^2 for
        sampling, N for noise. Over round, fraction and pair: cohort_size, m at which both parts of the mean update are
        as large, NaN where there is none from 1 to K. Over round and pair: local_steps, at which they are as large in
        the recorded cohort, NaN where there is none between the fractions, or one fraction. Over round and fraction:
        scale (a), snr (signal over error of the recorded cohort's mean update) and steps (mean over clients). Over
        round: cohort and clients, numbers of those that count.

    Raises:
        LookupError: If the run has no data or method of its own, or no round, or one of those named, kept its start.
        ValueError: If clients do not train by plain SGD, one diverged, fewer than three count, or an option is wrong.
    """
    plans = _plans(run, rounds, clients, replays, fractions)
    jobs = [job for plan in plans for job in plan.jobs]
    done = share_jobs(run, replay, jobs, workers=workers, progress=run.context.progress)
    results = iter([client for group in done for client in group])
    rows = [_measure(plan, [next(results) for _ in plan.who]) for plan in plans]
    coords: dict[str, Sequence[Any]] = {"round": [plan.plan.record.index for plan in plans], "fraction": [*fractions]}
    coords |= {"part": [*PARTS], "cause": [*CAUSES], "pair": [*PAIRS]}
    attrs = {"source": "this project, docs/noise-or-drift.md", "clients": clients, "replays": replays}
    attrs |= {"number": run.experiment.clients.number, "d": run.layout.size}
    attrs |= {"trainings": sum(plan.trainings for plan in plans)}
    dims, about = DIMS["noise_or_drift"], ABOUT["noise_or_drift"]
    return result(stack_rows(rows, dims, coords, dims), about, coords, analysis="noise_or_drift", **attrs)


def noise_or_drift_effort(run: Run, **options: Any) -> Effort:
    """Effort of `noise_or_drift` with the same options."""
    values = complete_options(noise_or_drift, run, options)
    plans = _plans(run, values.rounds, values.clients, values.replays, values.fractions)
    trainings = sum(plan.trainings for plan in plans)
    samples = sum(len(run.parts_in(plan.plan.record.index)[client]) for plan in plans for client in plan.who)
    most = max(len(plan.who) for plan in plans) * (values.replays + 1)
    memory = 4 * run.layout.size * (trainings * len(values.fractions) + most)
    return effort(run, trainings=trainings, forwards=3 * samples, memory=memory, workers=values.workers)


def _plans(
    run: Run, rounds: Sequence[int] | None, clients: Who, replays: int, fractions: Sequence[float]
) -> list[ReplayPlan]:
    if not isinstance(clients, str) and clients < LEAST:
        raise ValueError(f"clients is {clients!r}; accepted: cohort, all, or a number of its clients, {LEAST} or more.")
    if replays < 2:
        raise ValueError(f"replays is {replays}; noise is the difference of trainings, give 2 or more.")
    if not len(fractions) or sorted({*fractions, 1.0}) != list(fractions) or fractions[0] <= 0:
        raise ValueError(f"fractions is {list(fractions)}; give ascending numbers above 0, of which the last is 1.")
    require_plain_training(run)
    indices, shares = selected_rounds(run, "globals", rounds, ROUNDS), tuple(map(float, fractions))
    return [plan_replays(run, index, clients=clients, replays=replays, fractions=shares) for index in indices]


def _measure(plan: ReplayPlan, replayed: Sequence[Replayed]) -> dict[str, np.ndarray | float]:
    """Values of a round by name, with the bounds of their intervals."""
    steps, products = inner_products(plan, replayed)
    estimates = [item.estimated() for item in products]
    values = np.array([(v := item.values, v - (h := item.half), v + h) for item in estimates]).transpose(1, 0, 2)
    named = {name: values[:, :, span] for name, span in _SPANS.items()}
    named["cohort_size"] = np.moveaxis(np.array([item.equal_cohorts() for item in estimates]), -1, 0)
    named["local_steps"] = equal_steps(estimates, steps).T
    rows: dict[str, np.ndarray | float] = {"steps": steps, "clients": len(plan.who), "cohort": plan.cohort}
    for name, three in named.items():
        rows |= dict(zip((name, f"{name}_low", f"{name}_high"), three, strict=True))
    return rows


_SPANS: dict[str, slice | int] = {"square": SQUARE, "share": SHARE, "mean_square": MEAN, "scale": -2, "snr": -1}

"""Other aggregation rules evaluated on recorded rounds, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.evaluate_on import evaluate_models, losses_and_errors
from drift.analyses.per_round import ABOUT, DIMS, result, selected_rounds
from drift.config.random_keys import rng
from drift.methods._learned_weights import Aggregate, Learner, Schedule, initial
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.column_blocks import Updates, weighted_models
from drift.store.round_record import Round
from landscape.model.batchnorm import use_batches
from landscape.model.samples import Samples

Choose = Literal["half", "proxy"]

ROUNDS = 10
"""Default number of rounds."""

BATCH = 512
"""Samples in a gradient step of the weights."""


@analysis("round", "variant", "t", "client", cost="evaluations")
def what_if(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    windows: Sequence[int] = (3, 5, 9),
    lowest: float = 0.9,
    points: int = 11,
    choose: Choose = "half",
    steps: int = 30,
    rate: float = 0.1,
) -> xr.Dataset:
    """Loss and error of the recorded end of a round, and of other models in its place, over `variant`.

        end      the recorded global model
        fma      mean of the cohort by data sizes, whatever weights the experiment uses
        uniform  mean of the cohort in which all clients with samples weigh the same (a uniform soup)
        ima-P    mean of the last P aggregates; NaN unless all P were kept
        gamma    gamma times fma, the best gamma of a grid from `lowest` to 1 (FedLAW's global weight shrinking)
        weights  the best weights on the simplex over the cohort, by Adam on logits, starting from those of fma

    Each variant replaces the model of one round only: later rounds are not repeated. Gamma and the weights are chosen
    on one part of the data, and everything is reported on another, so that choosing alone gains nothing: by default on
    a random half of the test set and on the other half. Aggregates are v_t, in IMA's runs before its mean. Models with
    batch normalisation get statistics recomputed on training samples for every variant, the end included.

    Source: IMA, equation 5; FedLAW, sections 4 and 6; LSS paper, section 3 (uniform soup).

    Args:
        run: Run to analyse.
        rounds: Rounds that kept their globals; negative count from the last. By default 10, evenly spaced.
        windows: P of ima-P.
        lowest, points: Smallest gamma, and the number in the grid.
        choose: "half" of the test set, or the "proxy" set (everything is then reported on the whole test set).
        steps, rate: Gradient steps of the weights, on up to 512 samples each, and Adam's first rate on the logits.

    Returns:
        Dataset with loss (nats), error (fraction), gain and error_gain (those of the end minus the variant's: positive
        is better) over round and variant; gamma (round,), the best one; shrink_loss (round, t) over t = gamma as
        reported; share and weight (round, client), of fma and learned. Values whose models were not kept are NaN.

    Raises:
        LookupError: If no round, or one of those named, kept its globals.
        ValueError: If an option is out of range, or there is no proxy set.
    """
    _check(windows, lowest, points, steps, rate)
    choosing, reporting = _samples(run, choose)
    indices, grid = selected_rounds(run, "globals", rounds, ROUNDS), np.linspace(lowest, 1.0, points)
    names = ["end", "fma", "uniform", *(f"ima-{window}" for window in windows), "gamma", "weights"]
    coords: dict[str, Any] = {"round": indices, "variant": names, "t": grid}
    coords["client"] = np.arange(run.experiment.clients.number)
    every = {name: ("round", *dims) for name, dims in DIMS["what_if"].items()}
    columns = {name: np.full([len(coords[dim]) for dim in dims], np.nan) for name, dims in every.items()}
    for row, index in enumerate(run.context.track(indices)):
        record = run.round(index)
        basis = [record.kept("end"), *_aggregates(run, record, max(windows, default=1))]
        successive = len(basis) - 1
        variants = {"end": {0: 1.0}}
        variants |= {f"ima-{P}": dict.fromkeys(range(1, P + 1), 1 / P) for P in windows if successive >= P}
        shrunk: list[dict[int, float]] = []
        if (clients := record.clients) is not None and len(record.ids):
            fma, ids, shares, usable = len(basis), record.ids.numpy(), record.shares, (record.shares > 0).double()
            basis.append(weighted_models(shares, clients))
            best = _best_shrink(run, basis[fma], choosing, grid)
            learned = _best_weights(run, record, choosing, steps, rate)
            columns["gamma"][row], columns["share"][row, ids], columns["weight"][row, ids] = best, shares, learned
            basis += [weighted_models(weights, clients) for weights in (usable / usable.sum(), learned)]
            variants |= {"fma": {fma: 1.0}, "uniform": {fma + 1: 1.0}, "weights": {fma + 2: 1.0}, "gamma": {fma: best}}
            shrunk = [{fma: value} for value in grid.tolist()]
        rows = _coefficients([*variants.values(), *shrunk], len(basis))
        values = losses_and_errors(run, torch.stack(basis), reporting, rows)
        at = [names.index(name) for name in variants]
        columns["loss"][row, at] = values["loss"][: len(at)]
        columns["error"][row, at] = values["error"].where(~values["loss"].isnan(), torch.nan)[: len(at)]
        if shrunk:
            columns["shrink_loss"][row] = values["loss"][len(at) :]
    columns |= {gain: columns[name][:, :1] - columns[name] for gain, name in _GAINS.items()}
    variables, about = {name: (dims, columns[name]) for name, dims in every.items()}, ABOUT["what_if"]
    attrs = {"choose": choose, "chosen_on": len(choosing), "reported_on": len(reporting)}
    return result(variables, about, coords, analysis="what_if", source="IMA, equation 5; FedLAW, section 4", **attrs)


def what_if_effort(run: Run, **options: Any) -> Effort:
    """Effort of `what_if` with the same options; nothing is trained."""
    values = complete_options(what_if, run, options)
    choosing, reporting = (len(samples) for samples in _samples(run, values.choose))
    indices, points = selected_rounds(run, "globals", values.rounds, ROUNDS), values.points
    forwards = points * choosing + (points + len(values.windows) + 5) * reporting
    forwards += 3 * values.steps * min(BATCH, choosing)
    models = 5 + max(values.windows, default=1) + 2 * run.experiment.clients.per_round
    memory = (models + points) * 4 * run.layout.size
    return effort(run, trainings=0, forwards=forwards * len(indices), memory=memory)


def _aggregates(run: Run, record: Round, most: int) -> list[Tensor]:
    """Aggregates (d,) of at most so many successive rounds, the newest first."""
    available, models = set(run.kept("globals")), []
    for index in range(record.index, max(-1, record.index - most), -1):
        if index not in available:
            break
        before = record if index == record.index else run.round(index)
        models.append(before.extras.get("aggregate", before.kept("end")))
    return models


def _coefficients(points: Sequence[Mapping[int, float]], size: int) -> Tensor:
    """Rows (P, size) with the stated factors of models by number, and 0 elsewhere."""
    rows = torch.zeros(len(points), size, dtype=torch.float64)
    for row, factors in zip(rows, points, strict=True):
        for number, factor in factors.items():
            row[number] = factor
    return rows


def _best_shrink(run: Run, fma: Tensor, samples: Samples, grid: np.ndarray) -> float:
    """The gamma of the grid with the smallest loss of gamma times fma (d,) on the samples; NaN without any."""
    losses = evaluate_models(run, fma[None], samples, torch.from_numpy(grid)[:, None])["loss"]
    return float("nan") if bool(losses.isnan().all()) else float(grid[int(losses.nan_to_num(torch.inf).argmin())])


def _best_weights(run: Run, record: Round, samples: Samples, steps: int, rate: float) -> Tensor:
    """Weights (m,) of the clients, sum 1, after gradient steps on their logits; clients with weight 0 keep it."""
    start, usable = record.kept("start"), record.shares > 0
    flat = run.task.flat(start)
    use_batches(flat, True)
    objective = Aggregate(flat, Updates(record.kept("clients"), start, usable))
    count = -(-len(samples) // BATCH)
    blocks = cycle([samples[rows] for rows in torch.arange(len(samples)).tensor_split(count)])
    schedule = Schedule(rate, (0.5, 0.999), max(1, steps // 3), rate, 0)
    learner = Learner("exponential", *initial("exponential", record.shares[usable]), schedule)
    learner.learn("shares", steps, objective, lambda: [next(blocks)])
    weights = torch.zeros_like(record.shares)
    weights[usable] = learner.factor_and_shares()[1]
    return weights


def _samples(run: Run, choose: str) -> tuple[Samples, Samples]:
    test = run.task.split("test")
    if choose == "proxy":
        return run.task.split("proxy"), test
    order = torch.from_numpy(rng(run.experiment.seed, "what if").permutation(len(test)))
    half = len(test) // 2
    return test[order[:half].sort().values], test[order[half:].sort().values]


def _check(windows: Sequence[int], lowest: float, points: int, steps: int, rate: float) -> None:
    if any(window < 1 for window in windows) or len(set(windows)) < len(windows):
        raise ValueError(f"windows are {list(windows)}; give different whole numbers from 1 on.")
    if not 0 < lowest <= 1 or points < 2:
        raise ValueError(f"lowest is {lowest:g} and points is {points}; gamma is in (0, 1]; give 2 points or more.")
    if steps < 0 or rate <= 0:
        raise ValueError(f"steps is {steps} and rate is {rate:g}; give 0 steps or more and a rate above 0.")


_GAINS = {"gain": "loss", "error_gain": "error"}

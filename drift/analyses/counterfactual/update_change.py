"""The change from one mean update to the next, which FedEve's equation 13 squares, split into its exact causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.counterfactual.all_clients import find_clients_to_train, train_all_clients
from drift.analyses.counterfactual.step_terms import weighted_sum
from drift.analyses.per_round import ABOUT, ROUNDS, evenly_spaced, result, selected_rounds, stack_rows
from drift.runs.registry import analysis
from drift.runs.run import Run


@analysis("round", cost="training")
def update_change(run: Run, *, rounds: Sequence[int] | None = None, workers: int = 1) -> xr.Dataset:
    """How much of |D_t - D_(t-1)|^2 is the sampling drift of each round, and how much the change between them.

        ds = run.cached(drift.update_change, rounds=[-1])
        ds.to_dataframe()

    With the cohort's mean update D, that of all clients F, and the sampling drift S = D - F of rounds t and t - 1:

        |D_t - D_(t-1)|^2 = |S_t|^2 + |S_(t-1)|^2 + |F_t - F_(t-1)|^2
                            - 2 <S_(t-1), F_t - F_(t-1)> + 2 <S_t, F_t - F_(t-1) - S_(t-1)>

    The last term is zero in expectation over the cohort of round t if all clients weigh the same, else of order 1/m.
    S is exactly zero where every client with weight takes part. The term before the last is twice the part of the
    previous cohort's squared sampling drift that the next start undoes: a server that takes D_(t-1) whole moves the
    start by S_(t-1), one that averages the last P models by S_(t-1) / P. All K clients are trained again in both
    rounds, as `counterfactual` does.

    Source: FedEve, equation 13; the split: this project (docs/update-change.md).

    Args:
        run: Run to analyse.
        rounds: Rounds from 1 that kept their start and end, as the round before did; negative count from the last. By
            default at most 5, evenly spaced.
        workers: Number of processes for the trainings.

    Returns:
        Dataset over round, all squared norms or inner products of parameters: change, sampling, sampling_before,
        full_change, carried (minus twice the product), chance (the last term), and start_change, the squared distance
        of both starts. Attribute d.

    Raises:
        LookupError: If no round, or one of those named, kept its models or those of the round before.
    """
    indices = _with_the_round_before(run, rounds)
    updates: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
    rows = []
    for index in run.context.track(indices):
        updates = {number: updates.get(number) or _updates(run, number, workers) for number in (index - 1, index)}
        rows.append(_split(*updates[index - 1], *updates[index]))
    coords, attrs = {"round": indices}, {"source": "FedEve, equation 13", "d": run.layout.size}
    about = ABOUT["update_change"]
    return result(stack_rows(rows, about, coords, {}), about, coords, analysis="update_change", **attrs)


def update_change_effort(run: Run, **options: Any) -> Effort:
    """Effort of `update_change` with the same options."""
    values, clients = complete_options(update_change, run, options), run.experiment.clients
    indices = _with_the_round_before(run, values.rounds)
    trained = {*indices, *(index - 1 for index in indices)}
    trainings = sum(len(find_clients_to_train(run, index).trained) for index in trained)
    memory = (4 * clients.number + 48) * run.layout.size  # models, and six vectors in float64
    return effort(run, trainings=trainings, forwards=0, memory=memory, workers=values.workers)


def _with_the_round_before(run: Run, rounds: Sequence[int] | None) -> list[int]:
    stored = set(run.kept("globals"))
    pairs = [index for index in sorted(stored) if index - 1 in stored]
    indices = evenly_spaced(pairs, ROUNDS) if rounds is None else selected_rounds(run, "globals", rounds, ROUNDS)
    if not indices or (lacking := [index for index in indices if index not in pairs]):
        what = f"the round before round {lacking[0]}" if indices else "the models of two successive rounds"
        raise LookupError(f"run {run.name} did not keep {what}; name other rounds or train with --set keep.globals=all")
    return indices


def _updates(run: Run, index: int, workers: int) -> tuple[Tensor, Tensor, Tensor]:
    """Start, mean update D of the cohort and F of all clients, (d,) in float64; NaN where no client is left."""
    plan = find_clients_to_train(run, index)
    start = plan.record.kept("start").double()
    models = train_all_clients(run, plan, workers=workers)
    if not bool(models.weights.any()):
        return start, start * torch.nan, start * torch.nan
    mean, full = (weighted_sum(weights, models.models) for weights in (models.weights, models.shares))
    return start, mean - start, full - start


def _split(
    start_before: Tensor, mean_before: Tensor, full_before: Tensor, start: Tensor, mean: Tensor, full: Tensor
) -> dict[str, float]:
    now, before, moved = mean - full, mean_before - full_before, full - full_before
    values = {
        "change": (mean - mean_before).square().sum(),
        "sampling": now.square().sum(),
        "sampling_before": before.square().sum(),
        "full_change": moved.square().sum(),
        "carried": -2 * before @ moved,
        "chance": 2 * now @ (moved - before),
        "start_change": (start - start_before).square().sum(),
    }
    return {name: float(value) for name, value in values.items()}

"""Which aggregation weights of three clients would have been best, round by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import xarray as xr

from drift.analyses.cost_estimate import Effort, effort
from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.weight_simplex import mixtures
from drift.analyses.per_round import described, parameters, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.task import metric_units


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
    """Where on the simplex of three clients' weights the loss is lowest, over rounds, and how the optima are spread.

    In every round all sum_k lambda_k w_k with sum_k lambda_k = 1 on a barycentric grid are evaluated; `weight_simplex`
    gives the whole landscape of one round.

    Source: Li et al. 2023, appendix B, figure 12 (three clients, 100 rounds of FedAvg); mean and covariance of the
    optima: methods.md 3.3.

    Args:
        rounds: Rounds that kept these clients; by default all of them.
        clients: Ids of three clients; by default three of the last cohort kept that were together most often.
        step: Of the weights, one over a whole number.
        extend: How far below 0 weights may go, such as 0.2; rounded down to whole steps.
        split: Samples that the loss is averaged over.

    Returns:
        Dataset with best_weight (round, client), those at the lowest grid point; size_weight (round, client), those by
        data size, which FedAvg takes; best_loss and size_loss (round,) in nats there; mean (client,) and covariance
        (client, client_other) of best_weight over rounds (n - 1; NaN below two). A given round without one of the
        clients is NaN.

    Raises:
        LookupError: If no round kept three clients.
        ValueError: If no round holds the given clients together, or the step does not divide 1.
    """
    wanted, indices = together(run, rounds, clients)
    shape = len(indices), 3
    columns = {name: np.full(shape, np.nan) for name in ("best_weight", "size_weight")}
    losses = {name: np.full(len(indices), np.nan) for name in ("best_loss", "size_loss")}
    for row, index in enumerate(indices):
        record = run.round(index)
        if not set(wanted) <= set(record.ids.tolist()):
            continue
        sweep = mixtures(run, record, wanted, step=step, extend=extend)
        grid = evaluate_on(run, sweep, split, metrics=("loss",), part=row, parts=len(indices))
        columns["size_weight"][row] = sweep.mark_coefficients[-1]
        losses["size_loss"][row] = float(grid.mark_loss[-1])
        if bool(grid.loss.notnull().any()):
            lowest = int(np.nanargmin(grid.loss.values))
            columns["best_weight"][row] = sweep.coefficients[lowest]
            losses["best_loss"][row] = float(grid.loss.values.ravel()[lowest])
    found = xr.Dataset(
        {name: (("round", "client"), table) for name, table in columns.items()}
        | {name: ("round", column) for name, column in losses.items()},
        coords={"round": indices, "client": wanted, "client_other": wanted},
        attrs={"analysis": "best_weights", "source": "Li et al. 2023, figure 12", "step": step, "extend": extend},
    )
    known = columns["best_weight"][np.isfinite(columns["best_weight"]).all(1)]
    found["mean"] = ("client", known.mean(0) if len(known) else np.full(3, np.nan))
    spread = np.cov(known, rowvar=False) if len(known) > 1 else np.full((3, 3), np.nan)
    found["covariance"] = (("client", "client_other"), spread)
    nats = metric_units(run.task, "loss")
    return described(found, {**_ABOUT, "best_loss": (_BEST, nats), "size_loss": (_SIZE, nats)})


def best_weights_effort(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    clients: Sequence[int] | None = None,
    step: float = 0.02,
    extend: float = 0.0,
    split: str = "test",
) -> Effort:
    """What `best_weights` with these arguments costs."""
    _, indices = together(run, rounds, clients)
    side = round(1 / step) + 3 * int(extend / step + 1e-9)
    points = (side + 1) * (side + 2) // 2 + 5
    forwards = len(indices) * points * len(run.task.split(split))
    return effort(run, trainings=0, forwards=forwards, memory=4 * (_HELD + 3) * parameters(run))


def together(
    run: Run, rounds: Sequence[int] | None = None, clients: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Three clients, and the rounds that are looked at, as `best_weights` chooses them.

    Raises:
        LookupError, ValueError: As `best_weights` does.
    """
    indices = selected_rounds(run, "clients", rounds, None)
    held = {index: run.round(index).ids.tolist() for index in indices}
    usable = [ids for ids in held.values() if len(ids) >= 3]
    if not usable:
        raise LookupError(
            f"run {run.name} kept no round with three clients; train with --set keep.clients=all "
            "--set clients.per_round=3 or more."
        )
    wanted = companions(usable) if clients is None else list(clients)
    if len(set(wanted)) != 3:
        raise ValueError(f"clients are {wanted}; a simplex has three different ones.")
    together = [index for index, ids in held.items() if set(wanted) <= set(ids)]
    if not together:
        raise ValueError(f"no round of run {run.name} kept clients {wanted} together; the last kept {usable[-1]}.")
    return wanted, indices if rounds is not None else together


def companions(cohorts: Sequence[Sequence[int]]) -> list[int]:
    """Three clients of the last cohort that were in most of the cohorts together; the first such three."""
    last = list(cohorts[-1])
    shared = [[client for client in last if client in set(cohort)] for cohort in cohorts]
    if all(len(both) == len(last) for both in shared):
        return last[:3]
    times: Counter[tuple[int, ...]] = Counter(three for both in shared for three in combinations(both, 3))
    return list(max(combinations(last, 3), key=lambda three: times[tuple(three)]))


_HELD = 64
"""Models that a sweep holds at once, about."""

_BEST, _SIZE = "lowest loss on the simplex", "loss under the weights by size"
_ABOUT = {
    "best_weight": ("weight at the lowest loss on the simplex", "fraction"),
    "size_weight": ("weight by data size", "fraction"),
    "mean": ("mean of the best weight over rounds", "fraction"),
    "covariance": ("covariance of the best weights over rounds", "1"),
    "client_other": ("other client", "1"),
}

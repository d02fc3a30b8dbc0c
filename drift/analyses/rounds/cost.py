"""Computation, memory and communication of the clients of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import ABOUT, resolve_round, result
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.training.client import Update
from landscape.measures.cost import REPEATS, measure_cost, measure_seconds, median_and_range, step_cost
from landscape.model.model import with_buffers


@analysis(cost="training")
def training_cost(run: Run, *, round: int = -1, repeats: int = REPEATS, plain: bool = True) -> xr.Dataset:
    """Cost of one client round, from training one client again, and bytes that the whole cohort sends.

    The client is the one of the cohort with most samples; it is trained once to count and `repeats` times to measure,
    from the recorded start and with its state at that time. Multiply-accumulates are counted, forward and backward,
    for everything that the method computes. macs_training counts as the LSS paper does: one forward pass times
    (N + 1) / 2, the mean size of the pool, for LSS with N candidates. This holds where a step runs all members of the
    pool; the LSS of this project runs their mixture, one pass.

    Seconds depend on the load of the machine, and those of two runs are measured at different times: equal work may
    differ by more than their ranges. Therefore the same client is also trained plainly, without the method's part, in
    turn with the method; plain_ratio compares the two, and methods should be compared by it.

    Source: LSS paper, Table 5; papers.md 3.5.

    Args:
        run: Run to analyse.
        round: Round that kept its start; negative counts from the last one that did.
        repeats: Number of measured trainings; the result has their median and range.
        plain: Whether plain training is measured in turn.

    Returns:
        Dataset of scalars: macs of a sample's forward pass; macs_training; macs_round and macs_plain, of local training
        with the method and plainly; seconds_epoch and seconds_round of the client, and plain_ratio, the seconds over
        those of plain training (1 where the method adds nothing to it; NaN where it was not measured), each a median
        with the least and the largest of the repeats as NAME_low and NAME_high (NaN with one repeat);
        seconds_recorded (the run's mean seconds per round, all clients and the server); memory_round (peak bytes, the
        model included); bytes_up and bytes_down per round, of the whole cohort, uncompressed, as the method states them
        of this client (`Method.transferred`): models with floating buffers, control variates and the like, without
        parts that stay with clients; NaN where the method does not say; samples (of the client).

    Raises:
        LookupError: If the round kept no start, none of its clients has samples, or their state was not recorded.
    """
    record = run.round(resolve_round(run, round, "globals"))
    if not record.sizes.any():
        raise LookupError(f"no client of round {record.index} of run {run.name} has samples; choose another round.")
    client = int(record.ids[record.sizes.argmax()])
    ready = run.client(record.index, client)
    model = with_buffers(ready.start, ready.buffers)
    base = step_cost(run.task, model, batch=ready.local.batch, split=ready.samples, repeats=1)
    updates: list[Update] = []
    trained = measure_cost(lambda: updates.append(run.method.local(ready)), repeats=1)
    alike = not run.method.own_training and run.method.correction(run.method.prepare(ready)) is None
    others = [ready.train] if plain and not alike else []  # the same minibatches with the same gradient cost the same
    measured = measure_seconds(lambda: run.method.local(ready), *others, repeats=repeats)
    seconds, epochs = median_and_range(measured[:, 0]), _epochs(run, len(ready.samples))
    ratio = median_and_range(measured[:, 0] / measured[:, 1]) if others else (1.0 if plain else np.nan,) * 3
    down, up = run.method.transferred(run.setting, ready, updates[-1])
    recorded = run.metrics()
    stored = ready.flat.theta.nbytes + ready.flat.grad.nbytes + ready.flat.buffers.nbytes
    values = {
        "macs": float(base.macs),
        "macs_training": float(base.macs) * _pool_factor(run),
        "macs_round": trained.macs,
        "macs_plain": measure_cost(ready.train, repeats=1).macs if others else trained.macs if plain else np.nan,
        **_ranges("seconds_epoch", [value / epochs for value in seconds]),
        **_ranges("seconds_round", seconds),
        **_ranges("plain_ratio", ratio),
        "seconds_recorded": recorded.seconds.mean() if "seconds" in recorded else np.nan,
        "memory_round": trained.memory + stored,
        "bytes_up": len(record.ids) * up,
        "bytes_down": (len(record.ids) + len(record.extras.get("stopped", ()))) * down,
        "samples": len(ready.samples),
    }
    variables = {name: ((), float(value)) for name, value in values.items()}
    source = "LSS paper, Table 5"
    return result(
        variables, ABOUT["training_cost"], analysis="training_cost", source=source, round=record.index, client=client
    )


def _ranges(name: str, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _pool_factor(run: Run) -> float:
    return (run.method.pool_size + 1) / 2 if run.method.pool_size else 1.0


def _epochs(run: Run, samples: int) -> float:
    """Passes over the client's data as Table 5 counts them: SWA's cycles and a soup's models each take their own.

    The models of a pool of LSS share an epoch.
    """
    local = run.experiment.local
    return float(run.method.trainings * (local.epochs if local.steps is None else local.steps * local.batch / samples))

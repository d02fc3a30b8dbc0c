"""The loss over all aggregation weights of three clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import resolve_round, result
from drift.config.cohort_weights import cohort_weights
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.geometry.simplex import simplex
from landscape.results.zarr_files import Partial
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
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error of every weighted average of three client models of one round.

    alpha, beta and 1 - alpha - beta are the weights of the first, second and third client.

    Source: FedLAW paper, Fig. 12.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three by default.
        step: Of the weights, one over a whole number.
        extend: How far below 0 weights may go, such as 0.2; rounded down to whole steps.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Unfinished result to go on from.

    Returns:
        Surface over alpha and beta, NaN outside the triangle; the marks are the clients, "mean", and "by size", the
        average by the data sizes that FedAvg takes.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients, or the step does not divide 1.
    """
    record = run.round(resolve_round(run, round, "clients"))
    ids = record.ids.tolist()[:3] if clients is None else list(clients)
    sweep = simplex_of_clients(run, record, ids, step=step, extend=extend)
    about = {name: (f"weight of client {client}", "1") for name, client in zip(("alpha", "beta"), ids, strict=False)}
    return result(evaluate_on(run, sweep, split, partial), about, analysis="weight_simplex", round=record.index)


def simplex_of_clients(run: Run, record: Round, clients: Sequence[int], *, step: float, extend: float = 0.0) -> Sweep:
    """All weighted averages of three client models of a round; the last mark is their average "by size".

    Raises:
        ValueError: If the cohort does not hold three such clients, or the step does not divide 1.
    """
    ids = record.ids.tolist()
    if len(set(clients)) != 3 or not set(clients) <= set(ids):
        raise ValueError(
            f"round {record.index} has clients {ids}, weights were asked for {list(clients)}; name three of them."
        )
    rows = [ids.index(client) for client in clients]
    labels = [f"client {client}" for client in clients]
    buffers = record.client_buffers[rows]
    sweep = simplex(record.kept("clients")[rows], step=step, extend=extend, labels=labels, buffers=buffers)
    shares = cohort_weights(run.experiment, record.sizes)[rows].numpy()
    weights = (shares / shares.sum() if shares.sum() > 0 else np.full(3, 1 / 3)).tolist()
    return replace(sweep, marks=(*sweep.marks, make_mark("by size", weights[:2], weights)))

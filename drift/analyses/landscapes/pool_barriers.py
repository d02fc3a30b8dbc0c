"""Loss barriers in the pool of models of an LSS client."""

from __future__ import annotations

from typing import Any

import torch
import xarray as xr

from drift.analyses.evaluate_on import sharing
from drift.analyses.landscapes.barriers import rows_of
from drift.analyses.per_round import resolve_round
from drift.methods.lss import LSS
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.model.batchnorm import CALIBRATION, Statistics, recompute_statistics
from landscape.surfaces.barrier import pairwise_barriers, simplex_losses


@analysis("mark", "mark_other", "value", cost="evaluations")
def pool_barriers(
    run: Run,
    *,
    round: int = -1,
    client: int | None = None,
    points: int = 11,
    count: int = 64,
    split: str = "test",
    statistics: Statistics | None = None,
) -> xr.Dataset:
    """Loss barriers between the members of a client's pool, and loss and error at random averages of them.

    The pool is trained again from the record, bit for bit. Batch statistics of the members are those of the
    client's data, and so are those of models between members unless they are averaged.

    Source: Chen et al. 2024, section 4.3; methods.md 3.5.

    Args:
        run: Run to analyse.
        round: Round that kept the start of its clients; negative counts from the last one that did.
        client: Id of a client of its cohort; the first by default.
        points: Evaluations on each line, both ends included.
        count: Random averages, uniform on the simplex of the pool.
        split: Samples that the loss is averaged over.
        statistics: Of batch normalisation between the models, as in `round_plane`.

    Returns:
        Dataset as of `client_barriers`, with the marks "member 1" (in the paper's pool the received model) and so on,
        with loss (nats) and error (fraction) (value,) at the random averages, and their loss_mean, loss_max and so on.

    Raises:
        LookupError: If the run has no pools, or the round kept no start.
        ValueError: If the cohort does not hold this client.
    """
    if not isinstance(run.method, LSS):
        raise LookupError(f"run {run.name} was trained by {run.method.name()}; pools of models are grown by lss.")
    record = run.round(resolve_round(run, round, "globals"))
    number = int(record.ids[0]) if client is None else client
    rows_of(record, [number])
    trained = run.client(record.index, number)
    pool = run.method.pool(trained)
    buffers = []
    for member in pool.members:
        pool.flat.load(member)
        buffers.append(recompute_statistics(pool.flat, trained.samples))
    options: dict[str, Any] = {
        "split": split,
        "buffers": torch.stack(buffers),
        "statistics": statistics,
        "calibration": trained.samples if len(trained.samples) > 1 else CALIBRATION,  # one sample has no variance
    }
    labels = [f"member {index + 1}" for index in range(len(pool.members))]
    barriers = pairwise_barriers(run.task, pool.members, labels=labels, points=points, **options, **sharing(run))
    averages = simplex_losses(run.task, pool.members, count=count, seed=record.index, **options, **sharing(run))
    attrs = {"analysis": "pool_barriers", "round": record.index, "client": number, "split": split}
    return barriers.merge(averages).assign_attrs(attrs)

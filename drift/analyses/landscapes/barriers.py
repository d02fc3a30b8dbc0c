"""Barriers between clients, in the pool of an LSS client and between aligned models; curves that connect clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluation_of
from drift.analyses.landscapes.sweeps import round_clients, rows_of
from drift.analyses.per_round import resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.runs.run import open as open_run
from landscape.geometry.curves import Kind, along, connecting_curve
from landscape.model.batchnorm import CALIBRATION, Statistics, recompute_statistics
from landscape.surfaces.aligned_barrier import aligned_barrier as line_and_aligned_line
from landscape.surfaces.barrier import pairwise_barriers, simplex_losses


@analysis("mark", "mark_other", cost="evaluations")
def client_barriers(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 11,
    split: str = "test",
    statistics: Statistics | None = None,
) -> xr.Dataset:
    """Loss barriers between the client models of a round, and between each of them and the new global model.

    Source: Frankle et al. 2020, section 2; papers.md 3.5.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of clients of its cohort; by default the first ten with samples.
        points: Evaluations on each line, both ends included.
        split: Samples that the loss is averaged over.
        statistics: Of batch normalisation between the models, as in `round_plane`.

    Returns:
        Dataset of `landscape.pairwise_barriers`: barrier and midpoint (nats) and distance (mark, mark_other), and
        mark_loss (mark,); the last mark is "global".

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold these clients.
    """
    record, ids, rows = round_clients(run, round, clients, first=10)
    models = torch.cat([record.kept("clients")[rows], record.kept("end")[None]])
    labels = [*(f"client {client}" for client in ids), "global"]
    evaluation = evaluation_of(run, split=split, statistics=statistics)
    dataset = pairwise_barriers(run.task, models, labels=labels, points=points, evaluation=evaluation)
    return dataset.assign_attrs(analysis="client_barriers", round=record.index, split=split)


@analysis("t", cost="gradients")
def mode_curve(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    kind: Kind = "bezier",
    bends: int = 1,
    steps: int = 300,
    batch: int = 128,
    lr: float = 5e-3,
    points: int = 31,
    split: str = "test",
    statistics: Statistics | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Loss and error along a trained curve between two client models of a round, and on the straight line.

    The curve is trained on the training data of all clients.

    Source: Garipov et al. 2018, section 3.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of two clients of its cohort; the first two with samples by default.
        kind, bends, steps, batch, lr, seed: Of the curve, as in `landscape.connecting_curve`.
        points: Evaluations on either path.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        statistics: Of batch normalisation between the models, as in `round_plane`.

    Returns:
        Dataset of `landscape.along`.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold two such clients.
    """
    record, ids, rows = round_clients(run, round, clients, 2)
    a, b = record.kept("clients")[rows]
    curve = connecting_curve(
        run.task, a, b, kind=kind, bends=bends, steps=steps, batch=batch, lr=lr, split="train", seed=seed
    )
    evaluation = evaluation_of(run, split=split, statistics=statistics)
    dataset = along(run.task, curve, points=points, evaluation=evaluation)
    return dataset.assign_attrs(analysis="mode_curve", round=record.index, first=ids[0], second=ids[1])


@analysis("t", cost="evaluations")
def aligned_barrier(
    run: Run,
    *,
    other: str | None = None,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    split: str = "test",
    seed: int = 0,
) -> xr.Dataset:
    """Loss on the line between two models, before and after their hidden units are aligned.

    Source: Ainsworth et al. 2023, section 5.

    Args:
        other: Folder of a run with the same model: the line joins the global models of the two runs. Without it, two
            client models of one round.
        round: Round of the models; negative counts from the last one that kept them.
        clients: Ids of two clients of the cohort; the first two with samples by default.
        points: Evaluations on a line, both ends included.
        split: Samples that the loss is averaged over.
        seed: Of the alignment.

    Returns:
        Dataset of `landscape.aligned_barrier`; first and second in attrs are the rounds, or the clients.

    Raises:
        LookupError: If the models were not kept.
        ValueError: If the models differ in layout or are not plain stacks of layers, or a client is not in the cohort.
    """
    if other is None:
        record, names, rows = round_clients(run, round, clients, 2)
        models = record.kept("clients")[rows]
    else:
        second = open_run(other, data=run.context.data)
        if second.task.layout != run.task.layout:
            raise ValueError(f"runs {run.name} and {second.name} trained different models; give runs of one model.")
        records = [source.round(resolve_round(source, round, "globals")) for source in (run, second)]
        names, models = [record.index for record in records], torch.stack([record.kept("end") for record in records])
    evaluation = evaluation_of(run, split=split)
    dataset = line_and_aligned_line(run.task, *models, points=points, seed=seed, evaluation=evaluation)
    return dataset.assign_attrs(first=names[0], second=names[1], other=other or "", split=split)


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

    Source: Frankle et al. 2020, section 2; papers.md 3.5.

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
    if not run.method.pool_size:
        raise LookupError(f"run {run.name} was trained by {run.label}; pools of models are grown by lss.")
    record = run.round(resolve_round(run, round, "globals"))
    number = int(record.ids[0]) if client is None else client
    rows_of(record, [number])
    trained = run.client(record.index, number)
    grower: Any = run.method
    pool = grower.pool(trained)
    buffers = []
    for member in pool.members:
        pool.flat.load(member)
        buffers.append(recompute_statistics(pool.flat, trained.samples))
    calibration = trained.samples if len(trained.samples) > 1 else CALIBRATION  # one sample has no variance
    evaluation = evaluation_of(run, split=split, statistics=statistics, calibration=calibration)
    options: dict[str, Any] = {"buffers": torch.stack(buffers), "evaluation": evaluation}
    labels = [f"member {index + 1}" for index in range(len(pool.members))]
    barriers = pairwise_barriers(run.task, pool.members, labels=labels, points=points, **options)
    averages = simplex_losses(run.task, pool.members, count=count, seed=record.index, **options)
    attrs = {"analysis": "pool_barriers", "round": record.index, "client": number, "split": split}
    return barriers.merge(averages).assign_attrs(attrs)

"""Barriers between client models, curves that connect them, and barriers between aligned models of two runs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import xarray as xr

from drift.analyses.evaluate_on import sharing
from drift.analyses.per_round import resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.store.round_record import Round
from landscape.geometry.curves import Kind, along, connecting_curve
from landscape.model.batchnorm import Statistics
from landscape.surfaces.aligned_barrier import aligned_barrier as line_and_aligned_line
from landscape.surfaces.barrier import pairwise_barriers


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

    Source: Chen et al. 2024, section 4.3; methods.md 3.5.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of clients of its cohort; by default the first ten.
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
    record = run.round(resolve_round(run, round, "clients"))
    ids = record.ids.tolist()[:10] if clients is None else list(clients)
    rows = rows_of(record, ids)
    models = torch.cat([record.kept("clients")[rows], record.kept("end")[None]])
    buffers = torch.cat([record.client_buffers[rows], record.end_buffers[None]])
    labels = [*(f"client {client}" for client in ids), "global"]
    dataset = pairwise_barriers(
        run.task,
        models,
        labels=labels,
        points=points,
        split=split,
        buffers=buffers,
        statistics=statistics,
        **sharing(run),
    )
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
        clients: Ids of two clients of its cohort; the first two by default.
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
    record = run.round(resolve_round(run, round, "clients"))
    ids = _two_clients(record, clients)
    rows = rows_of(record, ids)
    a, b = record.kept("clients")[rows]
    curve = connecting_curve(
        run.task, a, b, kind=kind, bends=bends, steps=steps, batch=batch, lr=lr, split="train", seed=seed
    )
    dataset = along(
        run.task,
        curve,
        points=points,
        split=split,
        buffers=record.client_buffers[rows],
        statistics=statistics,
        **sharing(run),
    )
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
        clients: Ids of two clients of the cohort; the first two by default.
        points: Evaluations on a line, both ends included.
        split: Samples that the loss is averaged over.
        seed: Of the alignment.

    Returns:
        Dataset of `landscape.aligned_barrier`; first and second in attrs are the rounds, or the clients.

    Raises:
        LookupError: If the models were not kept.
        ValueError: If the models differ in layout, are no plain stacks of layers, or the clients are not in the cohort.
    """
    if other is None:
        record = run.round(resolve_round(run, round, "clients"))
        names = _two_clients(record, clients)
        models = record.kept("clients")[rows_of(record, names)]
    else:
        second = open_run(other, data=run.context.data)
        if second.task.layout != run.task.layout:
            raise ValueError(f"runs {run.name} and {second.name} trained different models; give runs of one model.")
        records = [source.round(resolve_round(source, round, "globals")) for source in (run, second)]
        names, models = [record.index for record in records], torch.stack([record.kept("end") for record in records])
    dataset = line_and_aligned_line(run.task, *models, points=points, split=split, seed=seed, **sharing(run))
    return dataset.assign_attrs(first=names[0], second=names[1], other=other or "", split=split)


def _two_clients(record: Round, clients: Sequence[int] | None) -> list[int]:
    """Two clients of a cohort, by default the first ones."""
    ids = record.ids.tolist()[:2] if clients is None else list(clients)
    if len(ids) != 2:
        raise ValueError(f"a path joins two clients, {ids} were given; name two of {record.ids.tolist()}.")
    return ids


def rows_of(record: Round, clients: Sequence[int]) -> list[int]:
    """Rows of clients in a cohort.

    Raises:
        ValueError: If a client is not in the cohort.
    """
    ids = record.ids.tolist()
    if absent := [client for client in clients if client not in ids]:
        raise ValueError(f"round {record.index} has clients {ids}, client {absent[0]} was asked for; name one of them.")
    return [ids.index(client) for client in clients]

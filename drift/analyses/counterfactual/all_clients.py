"""All K clients of a recorded round: those of the cohort as recorded, the others trained now from the same start."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from drift.config.cohort_weights import cohort_weights
from drift.runs.run import Run
from drift.simulation.retrain import replay
from drift.store.round_record import Round
from landscape.results.progress import Progress


@dataclass(frozen=True)
class Plan:
    """Who is trained for a round.

    Args:
        record: The round.
        counts: What clients weigh, all K of them: sizes, or 1 where weighting is uniform; 0 for those without samples
            and those that diverged. Shape (K,), float64.
        recorded: Models (d,) that need no training, by client.
        trained: Clients to be trained; none in a round without a cohort.
    """

    record: Round
    counts: Tensor
    recorded: dict[int, Tensor]
    trained: list[int]


@dataclass(frozen=True)
class Everyone:
    """Models (K, d), the start where a client counts for nothing; weights q_k over all and p_k over the cohort, (K,).

    Both sum to 1; p is all zero where nothing of the cohort is left.
    """

    models: Tensor
    shares: Tensor
    weights: Tensor


def plan(run: Run, index: int) -> Plan:
    """Who is trained: everybody with samples whose model is not recorded to the bit."""
    record, clients = run.round(index), run.experiment.clients
    held = zip(run.parts_in(record.index), run.dataset.held_out, strict=True)
    sizes = torch.tensor([len(part) + len(out) for part, out in held], dtype=torch.float64)
    counts = sizes if clients.weighting == "samples" else (sizes > 0).double()
    counts[record.extras.get("excluded", torch.zeros(0, dtype=torch.int64))] = 0
    recorded: dict[int, Tensor] = {}
    if record.clients is not None and run.experiment.keep.dtype == "float32":
        recorded = dict(zip(record.ids.tolist(), record.clients, strict=True))
    there = bool((record.sizes > 0).any())
    trained = [k for k in range(clients.number) if counts[k] > 0 and k not in recorded] if there else []
    return Plan(record, counts, recorded, trained)


def train(run: Run, wanted: Plan, *, workers: int = 1, progress: Progress | None = None) -> Everyone:
    """All clients of a round after local training; one that diverges counts for nothing."""
    record, start = wanted.record, wanted.record.kept("start")
    models = start.repeat(len(wanted.counts), 1)
    for client, model in wanted.recorded.items():
        models[client] = model
    if wanted.trained:
        jobs = [(record.index, client, 0) for client in wanted.trained]
        models[wanted.trained] = replay(run, jobs, workers=workers, progress=progress)[0].to(models)
    finite = torch.isfinite(models).all(1)
    q, p = torch.where(finite, wanted.counts, 0.0), torch.zeros_like(wanted.counts)
    if len(record.ids):
        p[record.ids] = cohort_weights(run.experiment, record.sizes)
    p = torch.where(q > 0, p, 0.0)
    return Everyone(torch.where(finite[:, None], models, start), q / q.sum(), p / p.sum() if bool(p.any()) else p)

"""All K clients of a round: their models, trained from the same start, and their updates with frozen gradients."""

from dataclasses import dataclass

import torch
from torch import Tensor

from drift.methods.fednova import path_length
from drift.runs.run import Run
from drift.simulation.retrain import replayed
from drift.store.round_record import Round
from drift.store.row_matrices import Rows, filled, release
from drift.training.client import Client, steps
from landscape.model.batchnorm import normalisers, use_batches
from landscape.model.losses import total_weight
from landscape.results.progress import Progress


@dataclass(frozen=True)
class ClientsToTrain:
    """The clients that have to be trained for a round.

    Args:
        record: The round.
        counts: Unnormalised weights of all K clients: sizes, or 1 where weighting is uniform; 0 for those without
            samples and those that diverged. Shape (K,), float64.
        recorded: Recorded models (d,), by client.
        trained: Clients to be trained; none in a round without a cohort.
    """

    record: Round
    counts: Tensor
    recorded: dict[int, Tensor]
    trained: list[int]


@dataclass(frozen=True)
class AllClients:
    """K models (d,), the start for clients of weight 0; weights q_k over all clients and p_k over the cohort, (K,).

    Both sum to 1; p is all zero where every client of the cohort has weight 0. It has the very bits of q where every
    client with weight is in the cohort, so that the sampling drift of full participation is exactly zero.
    """

    models: Rows
    shares: Tensor
    weights: Tensor


def find_clients_to_train(run: Run, index: int) -> ClientsToTrain:
    """Every client that has samples and no exactly recorded model."""
    record, clients = run.round(index), run.experiment.clients
    samples = zip(run.parts_in(record.index), run.dataset.held_out, strict=True)
    sizes = torch.tensor([len(numbers) + len(held_out) for numbers, held_out in samples], dtype=torch.float64)
    counts = sizes if clients.weighting == "samples" else (sizes > 0).double()
    counts[record.extras.get("excluded", torch.zeros(0, dtype=torch.int64))] = 0
    recorded: dict[int, Tensor] = {}
    if record.clients is not None and run.experiment.keep.dtype == "float32":
        recorded = dict(zip(record.ids.tolist(), record.clients, strict=True))
    has_cohort = bool((record.sizes > 0).any())
    trained = [k for k in range(len(counts)) if counts[k] > 0 and k not in recorded] if has_cohort else []
    return ClientsToTrain(record, counts, recorded, trained)


def train_all_clients(
    run: Run, plan: ClientsToTrain, *, workers: int = 1, progress: Progress | None = None
) -> AllClients:
    """All clients of a round after local training; one that diverges has weight 0."""
    record, start = plan.record, plan.record.kept("start")
    models = filled(len(plan.counts), start, (plan.recorded.get(client, start) for client in range(len(plan.counts))))
    if plan.trained:
        jobs = [(record.index, client, 0) for client in plan.trained]
        for index, (model, _) in replayed(run, jobs, workers=workers, progress=progress):
            models[plan.trained[index]] = model
            release(models)
    finite = torch.tensor([bool(model.isfinite().all()) for model in Rows(models)])
    for client in (~finite).nonzero().flatten().tolist():
        models[client] = start
        run.state_excluded(record.index, [client])
    q, p = torch.where(finite, plan.counts, 0.0), torch.zeros_like(plan.counts)
    p[record.ids] = q[record.ids]
    return AllClients(Rows(models), q / q.sum(), p / p.sum() if bool(p.any()) else p)


def frozen_update(client: Client) -> Tensor:
    """Update (d,), model minus start, of a client whose every step takes its full-batch gradient at the start.

    With G = grad L_k(start) + weight_decay * start over tau steps of the scheduled rate:

        sgd   -lr a G, a = (tau - rho (1 - rho^tau) / (1 - rho)) / (1 - rho) with momentum rho; tau without
        adam  -lr tau G / (|G| + 1e-8), since the moments of a constant gradient are G and G^2

    This is exact for plain local training with a new optimiser per round; terms of the method, such as a proximal
    term, are left out. Dropout is off; batch normalisation takes the statistics of blocks of the size of a minibatch.
    """
    tau, local = steps(client), client.local
    if tau == 0:
        return torch.zeros_like(client.start)
    gradient = full_gradient(client).add_(client.start, alpha=local.weight_decay)
    if local.optimizer == "adam":
        return -local.lr * tau * gradient / (gradient.abs() + 1e-8)
    return -local.lr * float(path_length(torch.tensor(tau, dtype=torch.float64), local.momentum)) * gradient


def full_gradient(client: Client) -> Tensor:
    """Gradient (d,) of the client's mean loss at the start."""
    flat, n, targets = client.flat, len(client.samples), client.samples.targets
    flat.load(client.start, client.buffers)
    by_batch = bool(normalisers(flat.module))
    use_batches(flat, by_batch)
    total, weight = torch.zeros_like(flat.grad), total_weight(flat.loss, targets)
    block = max(2, client.local.batch) if by_batch else 512
    for span in torch.arange(n, device=targets.device).tensor_split(max(1, n // block)):
        flat.gradient(client.samples[span])
        total.add_(flat.grad, alpha=total_weight(flat.loss, targets[span]) / weight if weight else 0.0)
    use_batches(flat, False)
    return total

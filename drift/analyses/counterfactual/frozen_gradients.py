"""Update of a client whose gradient stays as it is at the start of the round."""

from __future__ import annotations

import torch
from torch import Tensor

from drift.methods.fednova import path_length
from drift.training.client import Client, steps
from landscape.model.batchnorm import normalisers, use_batches


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
    flat, n = client.flat, len(client.samples)
    flat.load(client.start, client.buffers)
    by_batch = bool(normalisers(flat.module))
    use_batches(flat, by_batch)
    total = torch.zeros_like(flat.grad)
    block = max(2, client.local.batch) if by_batch else 512
    for part in torch.arange(n, device=client.samples.targets.device).tensor_split(max(1, n // block)):
        flat.gradient(client.samples[part])
        total.add_(flat.grad, alpha=len(part) / n)
    use_batches(flat, False)
    return total

"""Clients whose data are wrong: two of their labels swapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.random_keys import rng

Swap = tuple[int, int]
"""Two classes, the smaller one first."""


def swaps(experiment: Experiment, labels: np.ndarray, parts: Sequence[np.ndarray], classes: int) -> dict[int, Swap]:
    """The two classes that each corrupted client swaps, by client; keyed by the seed.

    A share is rounded to whole clients, drawn among all K. The classes are drawn from those that the client holds, as
    swapping others would change nothing; a client with one class takes it for another one.

    Source: FedLAW paper, Table 8; methods.md 6.3. That the classes are the client's own is this project's reading.

    Args:
        labels: True class of every training sample, shape (n,).
        parts: Sample numbers of each client, held-out ones included.
        classes: Number of classes.

    Raises:
        ValueError: If there is one class only.
    """
    spread, seed = experiment.clients, experiment.seed
    if isinstance(spread.corrupted, tuple):
        chosen = sorted(spread.corrupted)
    else:
        count = int(spread.corrupted * spread.number + 0.5)
        chosen = sorted(rng(seed, "corrupted").permutation(spread.number)[:count].tolist())
    if chosen and classes < 2:
        raise ValueError(
            f"clients {chosen} are to swap labels and there is {classes} class; leave clients.corrupted out."
        )
    return {
        client: _pair(np.unique(labels[parts[client]]), classes, rng(seed, "corrupted", client)) for client in chosen
    }


def corrupted_targets(targets: Tensor, parts: Sequence[np.ndarray], swapped: Mapping[int, Swap]) -> Tensor:
    """Targets (n,) in which the samples of each corrupted client have its two classes swapped; a new tensor."""
    found = targets.clone()
    for client, (one, other) in swapped.items():
        part = torch.from_numpy(parts[client])
        true = targets[part]
        found[part] = torch.where(true == one, other, torch.where(true == other, one, true))
    return found


def _pair(held: np.ndarray, classes: int, source: np.random.Generator) -> Swap:
    own = source.permutation(held)[:2].tolist()
    others = source.permutation(np.setdiff1d(np.arange(classes), own))[: 2 - len(own)].tolist()
    one, other = sorted([*own, *others])
    return int(one), int(other)

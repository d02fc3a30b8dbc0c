"""Labels that corrupted clients swap."""

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

    Source: FedLAW paper, Table 8; papers.md 6.3. That the classes are the client's own is this project's reading.

    Args:
        labels: True class of every training sample, shape (n,).
        parts: Sample numbers of each client, held-out ones included.
        classes: Number of classes.

    Raises:
        ValueError: If there is one class only.
    """
    partition, seed = experiment.clients, experiment.seed
    if isinstance(partition.corrupted, tuple):
        corrupted = sorted(partition.corrupted)
    else:
        count = int(partition.corrupted * partition.number + 0.5)
        corrupted = sorted(rng(seed, "corrupted").permutation(partition.number)[:count].tolist())
    if corrupted and classes < 2:
        raise ValueError(
            f"clients {corrupted} are to swap labels and there is {classes} class; leave clients.corrupted out."
        )
    return {
        client: _pair(np.unique(labels[parts[client]]), classes, rng(seed, "corrupted", client)) for client in corrupted
    }


def corrupted_targets(targets: Tensor, parts: Sequence[np.ndarray], swapped: Mapping[int, Swap]) -> Tensor:
    """Targets (n,) in which the samples of each corrupted client have its two classes swapped; a new tensor."""
    changed = targets.clone()
    for client, (first, second) in swapped.items():
        rows = torch.from_numpy(parts[client])
        true = targets[rows]
        changed[rows] = torch.where(true == first, second, torch.where(true == second, first, true))
    return changed


def _pair(own_classes: np.ndarray, classes: int, source: np.random.Generator) -> Swap:
    pair = source.permutation(own_classes)[:2].tolist()
    others = source.permutation(np.setdiff1d(np.arange(classes), pair))[: 2 - len(pair)].tolist()
    first, second = sorted([*pair, *others])
    return int(first), int(second)

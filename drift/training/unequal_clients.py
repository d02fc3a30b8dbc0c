"""What makes clients of a round unequal: their shares of the work, who stops, who is late, and what they send.

Every draw is keyed by seed, purpose, round and client, so that it is the same for every method and can be repeated.
"""

import numpy as np
import torch
from torch import Tensor

from drift.config.experiment import Experiment, Local
from drift.config.random_keys import rng


def share_of_steps(experiment: Experiment, index: int, client: int) -> float:
    """Share of its local steps that a client does in round `index`, even between the two of `clients.work`."""
    return float(rng(experiment.seed, "work", index, client).uniform(*experiment.clients.work))


def rounds_late(experiment: Experiment, index: int, client: int) -> int:
    """Rounds between the model that a client starts from and round `index`: even from 0 to `clients.late`."""
    late = experiment.clients.late
    return min(index, int(rng(experiment.seed, "late", index, client).integers(late + 1))) if late else 0


def stopped(experiment: Experiment, index: int, ids: np.ndarray) -> np.ndarray:
    """Those of the clients `ids` (m,) that stop in the middle of round `index` and send nothing.

    Each does with the chance `clients.stops`, but for the last: where all would, the one with the largest draw goes on.
    """
    draws = rng(experiment.seed, "stops", index).random(experiment.clients.number)[ids]
    return ids[(draws < experiment.clients.stops) & (draws < draws.max())]


def compressed(update: Tensor, local: Local) -> Tensor:
    """An update (d,) as the server decodes it: exact, its largest entries, or rounded to 255 levels.

    top-k keeps the round(`local.topk` d) entries of largest size, at least one, and sets the others to 0 (Aji and
    Heafield 2017, without a memory of the rest). 8 bits round each entry to a multiple of max |u| / 127.
    """
    if local.compress == "top-k":
        largest = update.abs().topk(max(1, round(local.topk * len(update)))).indices
        return torch.zeros_like(update).index_copy(0, largest, update[largest])
    if local.compress == "8-bit":
        level = update.abs().max() / 127
        return (update / level).round() * level if level > 0 else update
    return update

"""Which samples stand for the data of a round's clients, and whose own each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from drift.config.random_keys import rng
from landscape.model.samples import Samples

if TYPE_CHECKING:
    from drift.runs.run import Run
    from drift.store.round_record import Round

Split = Literal["train", "test"]
Union = Literal["cohort", "all"]


@dataclass(frozen=True)
class Drawn:
    """Samples of a split, by number.

    Args:
        run: Whose data they are.
        clients: Ids of the round's cohort, m of them.
        parts: Sample numbers (into train) that each of the K clients trains on in the round.
        split: train or test.
        numbers: Sample numbers (into the split), shape (n,).
        shares: Part of the data that each sample stands for, summing to 1, shape (n,), float64.
    """

    run: Run
    clients: list[int]
    parts: list[np.ndarray]
    split: Split
    numbers: np.ndarray
    shares: Tensor

    def __len__(self) -> int:
        return len(self.numbers)

    def samples(self, where: slice) -> Samples:
        """The samples in these places."""
        return self.run.task.split(self.split)[torch.from_numpy(self.numbers[where])]

    def member(self, where: slice) -> Tensor:
        """Whether each is a client's own, shape (m, places), bool: it trained on it; on test, it has its label."""
        run, numbers = self.run, self.numbers[where]
        if self.split == "test":
            labels = run.task.split("test").targets.cpu().numpy()[numbers]
            own = [np.isin(labels, run.labels[self.parts[client]]) for client in self.clients]
        else:
            own = [np.isin(numbers, self.parts[client]) for client in self.clients]
        return torch.from_numpy(np.stack(own))


def drawn(run: Run, record: Round, count: int, split: Split, union: Union) -> Drawn:
    """At most `count` training samples of each client of the cohort (or of all), or so many test samples a client.

    The same samples of a client come in every round that leaves it its own; each stands for its share of the data.
    """
    ids, seed, parts = record.ids.tolist(), run.experiment.seed, run.parts_in(record.index)
    if split == "test":
        size = len(run.task.split("test"))
        wanted = min(size, count * run.experiment.clients.per_round)
        numbers = np.sort(rng(seed, "decomposition", "test").permutation(size)[:wanted])
        return Drawn(run, ids, parts, split, numbers, torch.full((wanted,), 1 / wanted, dtype=torch.float64))
    sources = [client for client in (ids if union == "cohort" else range(len(parts))) if len(parts[client])]
    if not sources:
        return Drawn(run, ids, parts, split, np.zeros(0, dtype=np.int64), torch.zeros(0, dtype=torch.float64))
    picked = [rng(seed, "decomposition", client).permutation(parts[client])[:count] for client in sources]
    shares = np.concatenate([np.full(len(p), len(parts[c]) / len(p)) for c, p in zip(sources, picked, strict=True)])
    return Drawn(run, ids, parts, split, np.concatenate(picked), torch.from_numpy(shares / shares.sum()))


def drawn_number(run: Run, count: int, split: Split, union: Union) -> int:
    """About how many samples `drawn` gives in a round."""
    clients = run.experiment.clients
    if split == "test":
        return min(len(run.task.split("test")), count * clients.per_round)
    everyone = sum(min(count, len(part)) for part in run.parts)
    return everyone if union == "all" else -(-everyone * clients.per_round // clients.number)

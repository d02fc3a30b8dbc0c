"""Evaluation samples of a round, and the clients that own each of them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from drift.config.random_keys import rng
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.model.losses import IGNORED
from landscape.model.samples import Samples

Split = Literal["train", "test"]
Union = Literal["cohort", "all"]


@dataclass(frozen=True)
class EvaluationSamples:
    """Samples of a split, by number.

    Args:
        run: Run whose data they are.
        clients: Ids of the round's cohort, m of them.
        parts: Sample numbers (into train) that each of the K clients trains on in the round.
        split: train or test.
        numbers: Sample numbers (into the split), shape (n,).
        shares: Share of the data that each sample represents, summing to 1, shape (n,), float64.
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
        """Whether a client owns each sample, shape (m, places), bool: it trained on it; on test, it has its label."""
        run, numbers = self.run, self.numbers[where]
        if self.split == "test":
            labels = run.task.labels("test").cpu().numpy()[numbers]
            members = [np.isin(labels, run.labels[self.parts[client]]) for client in self.clients]
        else:
            members = [np.isin(numbers, self.parts[client]) for client in self.clients]
        return torch.from_numpy(np.stack(members))


def select_samples(run: Run, record: Round, count: int, split: Split, union: Union) -> EvaluationSamples:
    """At most `count` training samples per client of the cohort (or of all), or `count` test samples per cohort client.

    They are the same in every round in which the client has the same data; each represents its share of the data.
    Samples with ignored labels are left out.

    Raises:
        LookupError: If the data have no classes.
    """
    ids, seed, parts = record.ids.tolist(), run.experiment.seed, run.parts_in(record.index)
    if not run.dataset.class_names:
        raise LookupError(f"run {run.name} has no sample with a class; name another task.")
    counted = run.task.labels(split).cpu().numpy() != IGNORED
    if split == "test":
        number = min(int(counted.sum()), count * run.experiment.clients.per_round)
        numbers = np.sort(rng(seed, "decomposition", "test").permutation(np.flatnonzero(counted))[:number])
        equal = torch.full((number,), 1 / number, dtype=torch.float64)
        return EvaluationSamples(run, ids, parts, split, numbers, equal)
    parts = [numbers[counted[numbers]] for numbers in parts]
    sources = [client for client in (ids if union == "cohort" else range(len(parts))) if len(parts[client])]
    if not sources:
        none = torch.zeros(0, dtype=torch.float64)
        return EvaluationSamples(run, ids, parts, split, np.zeros(0, dtype=np.int64), none)
    picked = [rng(seed, "decomposition", client).permutation(parts[client])[:count] for client in sources]
    shares = np.concatenate([np.full(len(p), len(parts[c]) / len(p)) for c, p in zip(sources, picked, strict=True)])
    return EvaluationSamples(run, ids, parts, split, np.concatenate(picked), torch.from_numpy(shares / shares.sum()))


def expected_number(run: Run, count: int, split: Split, union: Union) -> int:
    """Approximate number of samples that `select_samples` returns per round."""
    clients = run.experiment.clients
    if split == "test":
        return min(len(run.task.split("test")), count * clients.per_round)
    total = sum(min(count, len(numbers)) for numbers in run.parts)
    return total if union == "all" else -(-total * clients.per_round // clients.number)

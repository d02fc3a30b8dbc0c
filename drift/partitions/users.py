"""The users in the data as clients. Source: FedEve paper; papers.md 6.3."""

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Grouped, Groups, Parts, require_samples


class Partition(Grouped):
    """A client is a user with all of its samples; with fewer clients than users, random users are selected.

    Clients are in the order of user numbers; the samples of other users are dropped. Needs users
    (femnist, movielens1m).

    Args:
        minimum: Smallest number of samples of a selected user.
    """

    minimum: int = Field(default=1, ge=1)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        user = self.group("user", labels, groups)
        order = np.argsort(user, kind="stable")
        _, begins, sizes = np.unique(user[order], return_index=True, return_counts=True)
        enough = np.flatnonzero(sizes >= self.minimum)
        if len(enough) < clients:
            raise ValueError(
                f"{clients} clients asked for, {len(enough)} users have at least {self.minimum} samples; use at most "
                f"{len(enough)} clients."
            )
        samples = np.split(order, begins[1:])
        return [samples[number] for number in np.sort(rng.permutation(enough)[:clients])]

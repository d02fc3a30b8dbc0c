"""Shards of samples sorted by label, a few per client (#C). Source: McMahan et al. 2017, section 3; papers.md 6.2."""

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Partitioner, require_samples


class Partition(Partitioner):
    """K s shards of floor(n / (K s)) neighbours in label order, s random shards per client.

    The n mod (K s) samples at the end of the label order are dropped. A client can get two shards of one
    class, and a shard can reach over a class border: #C = s is typical, not a strict bound.

    Args:
        shards: s, shards per client.
    """

    shards: int = Field(default=2, ge=1)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        number = clients * self.shards
        size = len(labels) // number
        if size == 0:
            most = len(labels) // clients
            raise ValueError(
                f"{clients} clients with {self.shards} shards each need {number} samples, there are {len(labels)}; "
                f"use at most {most} shards per client, or fewer clients."
            )
        blocks = np.argsort(labels, kind="stable")[: number * size].reshape(number, size)
        return [np.sort(blocks[shards].ravel()) for shards in rng.permutation(number).reshape(clients, self.shards)]

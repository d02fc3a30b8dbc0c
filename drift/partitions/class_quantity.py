"""A fixed number of classes for every client (#label). Source: IMA paper, Digit-Five; methods.md 6.2."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Partitioner, require_samples


class Partition(Partitioner):
    """Client k holds class k mod C and random other ones, `classes` in all; a class is split evenly among its holders.

    Classes that nobody holds, possible with fewer clients than classes, are dropped.

    Args:
        classes: s, classes of each client; all where there are fewer.
    """

    classes: int = Field(default=2, ge=1)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        present, places = np.unique(labels, return_inverse=True)
        holders: list[list[int]] = [[] for _ in present]
        for client in range(clients):
            first = client % len(present)
            others = rng.permutation(np.delete(np.arange(len(present)), first))[: self.classes - 1]
            for place in (first, *others.tolist()):
                holders[place].append(client)
        parts: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in range(clients)]
        for place, who in enumerate(holders):
            pieces = np.array_split(rng.permutation(np.flatnonzero(places == place)), max(1, len(who)))
            for client, piece in zip(who, pieces, strict=False):
                parts[client].append(piece)
        return [np.sort(np.concatenate(own)) for own in parts]

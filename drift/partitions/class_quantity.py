"""A fixed number of classes for every client (#label). Source: IMA paper, Digit-Five; papers.md 6.2."""

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Partitioner, require_samples


class Partition(Partitioner):
    """Client k has class k mod C and random other ones, `classes` in total; a class is split evenly among its clients.

    Classes without clients, possible with fewer clients than classes, are dropped.

    Args:
        classes: s, classes per client; all classes if there are fewer.
    """

    classes: int = Field(default=2, ge=1)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        present, classes = np.unique(labels, return_inverse=True)
        clients_of: list[list[int]] = [[] for _ in present]
        for client in range(clients):
            first = client % len(present)
            others = rng.permutation(np.delete(np.arange(len(present)), first))[: self.classes - 1]
            for index in (first, *others.tolist()):
                clients_of[index].append(client)
        pieces_of: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in range(clients)]
        for index, owners in enumerate(clients_of):
            pieces = np.array_split(rng.permutation(np.flatnonzero(classes == index)), max(1, len(owners)))
            for client, piece in zip(owners, pieces, strict=False):
                pieces_of[client].append(piece)
        return [np.sort(np.concatenate(client_pieces)) for client_pieces in pieces_of]

"""Equal random parts, whatever the labels. Source: papers.md 6.3 (IID)."""

import numpy as np

from drift.partitions._partitioner import Partitioner, require_samples


class Partition(Partitioner):
    """A random permutation cut into K parts whose sizes differ by at most one; no sample is dropped."""

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        return [np.sort(numbers) for numbers in np.array_split(rng.permutation(len(labels)), clients)]

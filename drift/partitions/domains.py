"""Every domain split over its own clients (domain x clients). Source: IMA paper; papers.md 6.3."""

import numpy as np
from pydantic import Field

from drift.partitions._partitioner import Based, Groups, NamedPartition, Parts, require_samples, split_with_groups
from drift.partitions.shards import Partition as Shards


class Partition(Based):
    """Each of D domains has K / D clients, in order, and `base` splits it over them.

    Where D does not divide K, the first K mod D domains have one client more. The IMA paper has 20 clients per domain:
    100 with Digit-Five, 80 with PACS. Needs domains (digits3, digit5, pacs, domainnet).

    Args:
        base: Partition of each domain; default: shards, two per client (IMA: shards, or Dirichlet 0.1).
    """

    base: NamedPartition = Field(default_factory=Shards)

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        require_samples(labels, clients)
        domain = self.group("domain", labels, groups)
        present = np.unique(domain)
        if clients < len(present):
            raise ValueError(
                f"{clients} clients cannot have {len(present)} domains of their own; use at least {len(present)} "
                "clients, or fewer domains (task.dataset_options.domains)."
            )
        parts: list[np.ndarray] = []
        for index, number in enumerate(present):
            rows = np.flatnonzero(domain == number)
            size = clients // len(present) + (index < clients % len(present))
            further = {kind: numbers[rows] for kind, numbers in (groups or {}).items()}
            parts += [rows[numbers] for numbers in split_with_groups(self.base, labels[rows], size, rng, further)]
        return parts

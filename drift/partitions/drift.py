"""Data that cause period drift, client drift, both or neither.

Source: Shen et al., FedEve, section 3.2 and Fig. 3b, where one method is trained in the four settings with the same
cohorts; papers.md 3.4.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field, field_validator

from drift.partitions._partitioner import NamedPartition, Partitioner, require_samples
from drift.partitions.dirichlet import split_classes


class Partition(Partitioner):
    """Clients have iid or skewed data, and the cohort of a round trains on its own data or redistributes them.

        setting   clients have   the cohort trains on
        iid       iid parts      its own data
        period    skewed parts   its data shuffled and split evenly: clients of a round agree, rounds differ
        client    iid parts      its data redistributed by Dir(concentration) per class: clients differ, rounds agree
        both      skewed parts   its own data

    Skewed parts are those of `base`, or of a Dirichlet draw of each class over all clients without cap or minimum.
    Clients without data in a round do not train and have weight 0.

    Args:
        concentration: Of the Dirichlet draws; small is skewed.
        base: Partition of the skewed parts instead; for "period" and "both".
    """

    setting: Literal["iid", "period", "client", "both"] = "both"
    concentration: float = Field(default=0.1, gt=0, allow_inf_nan=False)
    base: NamedPartition | None = None

    @field_validator("base")
    @classmethod
    def _base_stays(cls, value: Partitioner | None) -> Partitioner | None:
        if isinstance(value, Partition):
            raise ValueError("base is drift itself; give the partition of the clients, such as dirichlet or shards.")
        return value

    @property
    def moves(self) -> bool:
        return self.setting in ("period", "client")

    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        require_samples(labels, clients)
        if self.setting in ("iid", "client"):
            return _even(np.arange(len(labels)), clients, rng)
        if self.base is not None:
            return self.base.split(labels, clients, rng)
        return split_classes(labels, clients, self.concentration, rng)

    def for_round(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], cohort: np.ndarray, rng: np.random.Generator
    ) -> list[np.ndarray]:
        cohort_parts = [parts[client] for client in cohort.tolist()]
        if not self.moves:
            return cohort_parts
        pool = np.sort(np.concatenate(cohort_parts))
        if self.setting == "period":
            return _even(pool, len(cohort_parts), rng)
        return [pool[numbers] for numbers in split_classes(labels[pool], len(cohort_parts), self.concentration, rng)]


def _even(numbers: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random parts of the numbers, ascending, whose sizes differ by at most one."""
    return [np.sort(numbers) for numbers in np.array_split(rng.permutation(numbers), clients)]

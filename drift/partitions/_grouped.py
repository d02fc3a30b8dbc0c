"""Partitions that look at more than labels, and partitions that use another one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import SerializeAsAny, field_serializer, field_validator

from drift.partitions._partitioner import Partitioner
from drift.plugins import tables

Groups = Mapping[str, np.ndarray]
"""Further whole numbers of every sample, shape (n,), by what they tell: "domain", "user", "coarse"."""

_CALLED = {"coarse": "coarse class"}

_TOLD_BY = {
    "domain": "digits3, digit5, pacs, domainnet",
    "user": "femnist, movielens1m",
    "coarse": "cifar100",
}


class Grouped(Partitioner):
    """A rule that looks at the groups that samples belong to."""

    @abstractmethod
    def split(
        self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None
    ) -> list[np.ndarray]:
        """As `Partitioner.split`, with the groups of every sample that the dataset tells."""

    def group(self, kind: str, labels: np.ndarray, groups: Groups | None) -> np.ndarray:
        """The group of every sample, shape (n,).

        Raises:
            ValueError: If the dataset does not tell it.
        """
        if groups is None or kind not in groups:
            raise ValueError(
                f"partition {tables.name(self)} needs the {_CALLED.get(kind, kind)} of every sample, which the dataset "
                f"does not tell; those that do: {_TOLD_BY.get(kind, 'none')}."
            )
        found = np.asarray(groups[kind])
        if found.shape != labels.shape:
            raise ValueError(f"{kind} has shape {found.shape}, labels have {labels.shape}; give one for each sample.")
        return found


class Based(Grouped):
    """A rule that changes what another one, `base`, is given or gives."""

    base: SerializeAsAny[Partitioner]

    @field_validator("base", mode="before")
    @classmethod
    def _named_base(cls, value: Any) -> Any:
        from drift import partitions  # which imports this file through its plug-ins

        return tables.build(value, partitions.load)

    @field_validator("base")
    @classmethod
    def _base_stays(cls, value: Partitioner) -> Partitioner:
        if value.moves:
            raise ValueError(f"base is {tables.name(value)}, which deals data out anew each round; give another one.")
        return value

    @field_serializer("base")
    def _dump_base(self, value: Partitioner) -> dict[str, Any]:
        return tables.dump(value)


def divided(
    partition: Partitioner, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None
) -> list[np.ndarray]:
    """What a partition gives, told the groups if it looks at them."""
    if isinstance(partition, Grouped):
        return partition.split(labels, clients, rng, groups)
    return partition.split(labels, clients, rng)

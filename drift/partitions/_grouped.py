"""Partitions by groups of samples, and partitions with a base partition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, field_validator

from drift.partitions._partitioner import Partitioner, Parts
from drift.plugins import tables

Groups = Mapping[str, np.ndarray]
"""Group of every sample, whole numbers (n,), by kind: "domain", "user", "coarse"."""

_WORDS = {"coarse": "coarse class"}

_DATASETS = {
    "domain": "digits3, digit5, pacs, domainnet",
    "user": "femnist, movielens1m",
    "coarse": "cifar100",
}


class Grouped(Partitioner):
    """A partition by the groups of samples."""

    @abstractmethod
    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None = None) -> Parts:
        """As `Partitioner.split`, with the groups of every sample that the dataset has."""

    def group(self, kind: str, labels: np.ndarray, groups: Groups | None) -> np.ndarray:
        """The group of every sample, shape (n,).

        Raises:
            ValueError: If the dataset does not have it.
        """
        if groups is None or kind not in groups:
            raise ValueError(
                f"partition {tables.name(self)} needs the {_WORDS.get(kind, kind)} of every sample, which the dataset "
                f"does not have; datasets with it: {_DATASETS.get(kind, 'none')}."
            )
        numbers = np.asarray(groups[kind])
        if numbers.shape != labels.shape:
            raise ValueError(f"{kind} has shape {numbers.shape}, labels have {labels.shape}; give one per sample.")
        return numbers


def _named(value: Any) -> Any:
    from drift import partitions  # imports this file through its plug-ins

    return tables.build(value, partitions.load)


NamedPartition = Annotated[Partitioner, BeforeValidator(_named), PlainSerializer(tables.dump)]
"""A partition in settings: a name, or a table of name and options."""


class Based(Grouped):
    """A partition that changes the samples or the parts of another one, `base`."""

    base: NamedPartition

    @field_validator("base")
    @classmethod
    def _base_stays(cls, value: Partitioner) -> Partitioner:
        if value.moves:
            raise ValueError(f"base is {tables.name(value)}, which redistributes data each round; give another one.")
        return value


def split_with_groups(
    partition: Partitioner, labels: np.ndarray, clients: int, rng: np.random.Generator, groups: Groups | None
) -> list[np.ndarray]:
    """Parts of a partition, which gets the groups if it uses them."""
    if isinstance(partition, Grouped):
        return partition.split(labels, clients, rng, groups)
    return partition.split(labels, clients, rng)

"""The interface of partitions, and those of partitions by groups of samples or with a base partition."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, ConfigDict, PlainSerializer, field_validator

from drift.plugins import tables
from drift.plugins.strict_numbers import StrictNumbers

Parts = list[np.ndarray]
"""Sample numbers of every client, ascending int64 arrays."""


class Partitioner(StrictNumbers, ABC):
    """A rule by which clients get samples; the fields of a subclass are its options."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def split(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Sample numbers of every client, disjoint.

        Args:
            labels: Class of every sample, shape (n,), whole numbers.
            clients: K, at least 1.
            rng: Source of every random choice.

        Returns:
            K ascending int64 arrays of numbers in 0..n-1.

        Raises:
            ValueError: If the samples cannot be split like this; the message has a remedy.
        """

    @property
    def moves(self) -> bool:
        """Whether the data of the cohort are redistributed each round."""
        return False

    @property
    def splits_test(self) -> bool:
        """Whether it splits training and test samples together; `tested` then selects the test samples."""
        return False

    def tested(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], rng: np.random.Generator
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Training and test samples of each client, where `splits_test`; no test samples here."""
        return list(parts), [numbers[:0] for numbers in parts]

    def for_round(
        self, labels: np.ndarray, parts: Sequence[np.ndarray], cohort: np.ndarray, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Sample numbers that each client of a round's cohort trains on; their own here.

        The cohort as a whole has the same samples as before, each once.

        Args:
            labels: Class of every sample, shape (n,).
            parts: Result of `split` for the K clients.
            cohort: Client numbers, shape (m,).
            rng: Source of every random choice of this round.

        Returns:
            m ascending int64 arrays, in the order of the cohort; some may be empty.
        """
        return [parts[client] for client in cohort.tolist()]


def require_samples(labels: np.ndarray, clients: int) -> None:
    """Raise ValueError for labels that are not one-dimensional, no clients, and fewer samples than clients."""
    if labels.ndim != 1:
        raise ValueError(f"labels have shape {labels.shape}; a partition needs one label per sample, shape (n,).")
    if clients < 1:
        raise ValueError(f"{clients} clients asked for; give at least 1.")
    if len(labels) < clients:
        raise ValueError(f"{len(labels)} samples cannot serve {clients} clients; use at most {len(labels)} clients.")


Groups = Mapping[str, np.ndarray]
"""Group of every sample, whole numbers (n,), by kind: "domain", "user", "coarse"."""

_WORDS = {"coarse": "coarse class"}

_DATASETS = {"domain": "digits3, digit5, pacs, domainnet", "user": "femnist, movielens1m", "coarse": "cifar100"}


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

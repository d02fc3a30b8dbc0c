"""Selection of samples: by class, by domain, few per group, and a test split where none is published."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from landscape.datasets._dataset import Dataset, Groups, fingerprint, select_samples
from landscape.model.samples import Samples


def select_classes(dataset: Dataset, selected: Sequence[int]) -> Dataset:
    """The samples of the selected classes, with classes renumbered in this order.

    The fingerprint stays that of the whole dataset.

    Raises:
        ValueError: If a class is chosen twice or there is no such class.
    """
    count = len(dataset.classes)
    if len(set(selected)) < len(selected) or not all(0 <= label < count for label in selected):
        raise ValueError(
            f"classes is {list(selected)}; give different numbers from 0 to {count - 1} for {dataset.name}."
        )
    numbers = torch.full((count,), -1)
    numbers[torch.tensor(list(selected))] = torch.arange(len(selected))

    def rows(samples: Samples) -> Tensor:
        return (numbers[samples.targets] >= 0).nonzero()[:, 0]

    def renumber(samples: Samples) -> Samples:
        return replace(samples, targets=numbers[samples.targets])

    names = tuple(dataset.classes[label] for label in selected)
    subset = select_samples(dataset, rows(dataset.train), rows(dataset.test), stated=dataset.fingerprint)
    return replace(subset, train=renumber(subset.train), test=renumber(subset.test), classes=names)


def select_domains(dataset: Dataset, domains: Sequence[str] | None) -> Dataset:
    """The samples of the named domains, numbered in this order; all for None.

    Raises:
        ValueError: If a name is unknown or named twice.
    """
    if domains is None:
        return dataset
    group = dataset.groups["domain"]
    require_domains(dataset.name, domains, group.names)
    return select_groups(dataset, "domain", [group.names.index(name) for name in domains])


def select_groups(dataset: Dataset, label: str, selected: Sequence[int]) -> Dataset:
    """The samples of some groups of a further label, given by number; these groups are renumbered in this order."""
    group = dataset.groups[label]
    new = torch.full((len(group.names),), -1)
    new[torch.tensor(selected)] = torch.arange(len(selected))
    subset = select_samples(dataset, *((new[numbers] >= 0).nonzero()[:, 0] for numbers in (group.train, group.test)))
    inner, names = subset.groups[label], tuple(group.names[number] for number in selected)
    groups = {**subset.groups, label: Groups(names, new[inner.train], new[inner.test])}
    return replace(subset, groups=groups, fingerprint=fingerprint(subset.train, subset.test, groups))


def first(groups: Tensor, number: int | None) -> Tensor:
    """Numbers of the first `number` samples of every group, ascending; of all where it is None.

    Args:
        groups: Group of every sample, shape (n,).
        number: At least 1.
    """
    if number is None:
        return torch.arange(len(groups))
    order = torch.argsort(groups, stable=True)
    sizes = groups.bincount()
    rank = torch.arange(len(groups)) - (sizes.cumsum(0) - sizes)[groups[order]]
    return order[rank < number].sort().values


def split_by_group(groups: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Split at random into training and test samples; returns their numbers, both ascending.

    Args:
        groups: Group of every sample, shape (n,).
        share: Of every group's samples that become test samples, rounded down, a fraction 0-1.
        seed: Of the selection; each group has its own random numbers.
    """
    numbers, test_members = groups.numpy(), []
    order = np.argsort(numbers, kind="stable")
    for group, members in enumerate(np.split(order, np.cumsum(np.bincount(numbers))[:-1])):
        test_members.append(np.random.default_rng([seed, group]).permutation(members)[: int(share * len(members))])
    test = np.sort(np.concatenate(test_members))
    return torch.from_numpy(np.setdiff1d(np.arange(len(numbers)), test)), torch.from_numpy(test)


def with_test(dataset: Dataset, train: Tensor, test: Tensor) -> Dataset:
    """A dataset that is published in one split, divided into training and test samples by number."""
    groups = {name: replace(group, test=group.train) for name, group in dataset.groups.items()}
    return select_samples(replace(dataset, test=dataset.train, groups=groups), train, test)


def require_domains(name: str, domains: Sequence[str], accepted: Sequence[str]) -> None:
    """Require different names of domains.

    Raises:
        ValueError: If there is none, or one is unknown or given twice.
    """
    if isinstance(domains, str) or not domains or len({*domains}) < len(domains) or not {*domains} <= {*accepted}:
        raise ValueError(f"domains is {domains!r}; {name} takes a list of different ones of {', '.join(accepted)}.")


def require_counts(name: str, **options: int | None) -> None:
    """Require numbers of samples, by option, that are whole numbers >= 1 or None.

    Raises:
        ValueError: If one is another value.
    """
    for option, value in options.items():
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"{option} is {value!r}; {name} takes a whole number, {option} >= 1, or none for all.")


def require_size(name: str, size: int) -> None:
    """Require the side of an image, a whole number of pixels >= 8.

    Raises:
        ValueError: If it is another value.
    """
    if type(size) is not int or size < 8:
        raise ValueError(f"size is {size!r}; {name} takes a whole number of pixels, size >= 8.")


def require_share(name: str, option: str, value: float) -> None:
    """Require a fraction between 0 and 1.

    Raises:
        ValueError: If it is another value.
    """
    if not isinstance(value, int | float) or not 0 < value < 1:
        raise ValueError(f"{option} is {value!r}; {name} takes a fraction, 0 < {option} < 1.")

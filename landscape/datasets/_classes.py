"""A dataset of some classes of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from landscape.datasets._dataset import Dataset, select_samples
from landscape.model.samples import Samples


def select_classes(dataset: Dataset, selected: Sequence[int]) -> Dataset:
    """The samples of the chosen classes in their order, with classes numbered anew in the order chosen.

    The fingerprint stays that of the whole dataset.

    Raises:
        ValueError: If a class is chosen twice or there is no such class.
    """
    count = len(dataset.classes)
    if len(set(selected)) < len(selected) or not all(0 <= label < count for label in selected):
        raise ValueError(
            f"classes is {list(selected)}; give different numbers from 0 to {count - 1} for {dataset.name}."
        )
    anew = torch.full((count,), -1)
    anew[torch.tensor(list(selected))] = torch.arange(len(selected))

    def numbers(samples: Samples) -> Tensor:
        return (anew[samples.targets] >= 0).nonzero()[:, 0]

    def renamed(samples: Samples) -> Samples:
        return replace(samples, targets=anew[samples.targets])

    names = tuple(dataset.classes[label] for label in selected)
    subset = select_samples(dataset, numbers(dataset.train), numbers(dataset.test), stated=dataset.fingerprint)
    return replace(subset, train=renamed(subset.train), test=renamed(subset.test), classes=names)

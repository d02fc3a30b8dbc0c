"""A dataset of some classes of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from landscape.datasets._dataset import Dataset, select_samples
from landscape.model.samples import Samples


def select_classes(dataset: Dataset, chosen: Sequence[int]) -> Dataset:
    """The samples of the chosen classes in their order, with classes numbered anew in the order chosen.

    The fingerprint stays that of the whole dataset.

    Raises:
        ValueError: If a class is chosen twice or there is no such class.
    """
    count = len(dataset.classes)
    if len(set(chosen)) < len(chosen) or not all(0 <= label < count for label in chosen):
        raise ValueError(f"classes is {list(chosen)}; give different numbers from 0 to {count - 1} for {dataset.name}.")
    anew = torch.full((count,), -1)
    anew[torch.tensor(list(chosen))] = torch.arange(len(chosen))

    def numbers(samples: Samples) -> Tensor:
        return (anew[samples.targets] >= 0).nonzero()[:, 0]

    def renamed(samples: Samples) -> Samples:
        return replace(samples, targets=anew[samples.targets])

    names = tuple(dataset.classes[label] for label in chosen)
    left = select_samples(dataset, numbers(dataset.train), numbers(dataset.test), stated=dataset.fingerprint)
    return replace(left, train=renamed(left.train), test=renamed(left.test), classes=names)

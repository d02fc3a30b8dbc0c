"""`Dataset`: raw samples with labels and metadata, and their scaling to float inputs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from landscape.model.samples import Samples, joined, leaves

SCALES = ("unit", "half", "standard")


@dataclass(frozen=True)
class Groups:
    """A further label of every sample, such as the domain it is from, the user who made it or its coarse class.

    Args:
        names: What the numbers mean.
        train, test: Number of each sample's group, shapes (n,) of the splits, int64.
    """

    names: tuple[str, ...]
    train: Tensor
    test: Tensor


@dataclass(frozen=True)
class Dataset:
    """Train and test samples of one classification problem.

    Args:
        name: Public name.
        train, test: Inputs (n, *shape) and int64 targets (n,); raw integers until scaled.
        classes: Class names, in target order.
        shape: Shape of one input.
        fingerprint: Short hash of the raw tensors; scaling keeps it.
        scale: Preferred scaling, or the one that was applied.
        levels: Largest raw value, such as 255; None once inputs are real numbers.
        mean, std: For each channel, of the inputs scaled to [0, 1]; used by the scaling "standard", which computes
            those of the training samples where a dataset states none.
        groups: Further labels by name: "domain", "user", "coarse".
        loss: "cross_entropy" with one output per class, "binary" with one output, the logit of class 1, or "tokens"
            with logits (n, T, V) for labels (n, T) of texts, of which -100 does not count; classes are the vocabulary,
            and all texts are of one class where a partition asks.
    """

    name: str
    train: Samples
    test: Samples
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    fingerprint: str
    scale: str = "unit"
    levels: int | None = 255
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    groups: Mapping[str, Groups] = field(default_factory=dict)
    loss: str = "cross_entropy"


def fingerprint(train: Samples, test: Samples, groups: Mapping[str, Groups] | None = None) -> str:
    """First 16 hexadecimal digits of the SHA-256 of all tensors: types, shapes and bytes; of groups also the names."""
    digest = hashlib.sha256()

    def add(tensor: Tensor) -> None:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().numpy().data)

    for leaf in (*leaves(train.inputs), train.targets, *leaves(test.inputs), test.targets):
        add(leaf)
    for name, group in sorted((groups or {}).items()):
        digest.update(repr((name, group.names)).encode())
        add(group.train)
        add(group.test)
    return digest.hexdigest()[:16]


def select_samples(
    dataset: Dataset, train: Tensor | None, test: Tensor | None, *, stated: str | None = None
) -> Dataset:
    """The dataset restricted to samples by number, in this order; None keeps all.

    Args:
        train, test: Sample numbers of each split.
        stated: Fingerprint of the result; by default that of what is left.
    """
    if train is None and test is None:
        return dataset

    def selected(group: Any) -> dict[str, Any]:
        numbers = {"train": train, "test": test}
        return {split: getattr(group, split)[rows] for split, rows in numbers.items() if rows is not None}

    groups = {name: replace(group, **selected(group)) for name, group in dataset.groups.items()}
    restricted = replace(dataset, groups=groups, **selected(dataset))
    if stated is None:
        stated = fingerprint(restricted.train, restricted.test, groups)
    return replace(restricted, fingerprint=stated)


def merge_splits(dataset: Dataset) -> Dataset:
    """The dataset with training and test samples, in this order, both as training and as test samples."""
    both, groups = joined([dataset.train, dataset.test]), {}
    for name, group in dataset.groups.items():
        numbers = torch.cat([group.train, group.test])
        groups[name] = Groups(group.names, numbers, numbers)
    return replace(dataset, train=both, test=both, groups=groups)


def scale_inputs(dataset: Dataset, scale: str) -> Dataset:
    """The dataset with float32 inputs: x = raw / levels, then the scaling of x.

    "unit" is x, "half" (x - 0.5) / 0.5, "standard" (x - mean) / std for each channel, "default" the dataset's own.

    Raises:
        ValueError: If there is no such scaling, or the inputs are real numbers and scale is not "default".
    """
    if scale not in ("default", *SCALES):
        raise ValueError(f"no scale named {scale!r}; accepted: default, {', '.join(SCALES)}.")
    if dataset.levels is None:
        if scale != "default":
            raise ValueError(f"scale is {scale!r}, but {dataset.name} holds real numbers; leave scale at 'default'.")
        return dataset
    applied = dataset.scale if scale == "default" else scale
    if applied == "standard" and not dataset.mean:
        mean, std = _moments(dataset)
        dataset = replace(dataset, mean=mean, std=std)
    return replace(
        dataset,
        train=_scale_samples(dataset, dataset.train, applied),
        test=_scale_samples(dataset, dataset.test, applied),
        scale=applied,
        levels=None,
    )


def normalisation(dataset: Dataset) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """mean and std of z = (x - mean) / std for inputs z of a scaled dataset and x in [0, 1]: one number per
    channel, or one for all.

    Where the values were real numbers from the start, x runs from the smallest to the largest of them.
    """
    constants = {"unit": ((0.0,), (1.0,)), "half": ((0.5,), (0.5,)), "standard": (dataset.mean, dataset.std)}
    if dataset.scale in constants:
        return constants[dataset.scale]
    return range_normalisation(_tensor(dataset.train.inputs), _tensor(dataset.test.inputs))


def range_normalisation(*inputs: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """mean and std of z = (x - mean) / std for inputs z, so that x runs from 0 to 1."""
    ends = [(float(tensor.min()), float(tensor.max())) for tensor in inputs if tensor.numel()]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    width = high - low if high > low else 1.0
    return (-low / width,), (1 / width,)


def _moments(dataset: Dataset) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of raw / levels over the training samples, for each channel; std 1 where it is 0."""
    levels = dataset.levels or 1
    channels = _tensor(dataset.train.inputs).transpose(0, 1)
    counts = torch.zeros(len(channels), levels + 1, dtype=torch.int64)
    for row, channel in zip(counts, channels, strict=True):
        for block in channel.split(4096):
            row += block.flatten().to(torch.int32).bincount(minlength=levels + 1)
    shares = counts.double() / counts.sum(1, keepdim=True)
    values = torch.arange(levels + 1, dtype=torch.float64) / levels
    mean = shares @ values
    std = (shares @ values.square() - mean.square()).clamp(min=0).sqrt()
    return tuple(mean.tolist()), tuple(float(value) or 1.0 for value in std)


def _scale_samples(dataset: Dataset, samples: Samples, scale: str) -> Samples:
    raw = _tensor(samples.inputs)
    # numpy uses huge pages: filling fresh memory of CIFAR-10 is several times faster than with torch.empty
    inputs = torch.from_numpy(np.empty(raw.shape, np.float32)).copy_(raw).div_(dataset.levels or 1)
    if scale == "half":
        inputs.sub_(0.5).div_(0.5)
    if scale == "standard":
        inputs.sub_(_channels(dataset.mean, inputs)).div_(_channels(dataset.std, inputs))
    return Samples(inputs, samples.targets)


def _channels(values: tuple[float, ...], like: Tensor) -> Tensor:
    return torch.tensor(values).view(-1, *[1] * (like.ndim - 2))


def _tensor(inputs: object) -> Tensor:
    if not isinstance(inputs, Tensor):
        raise ValueError(f"inputs of a dataset must be one tensor, not {type(inputs).__name__}.")
    return inputs

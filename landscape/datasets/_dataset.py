"""What a dataset is, and how its raw values become float inputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from landscape.samples import Samples

SCALES = ("unit", "half", "standard")


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
        mean, std: For each channel, of the inputs scaled to [0, 1]; used by the scaling "standard".
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


def fingerprint(train: Samples, test: Samples) -> str:
    """First 16 hexadecimal digits of the SHA-256 of all four tensors: types, shapes and bytes."""
    digest = hashlib.sha256()
    for leaf in (train.inputs, train.targets, test.inputs, test.targets):
        tensor = _tensor(leaf)
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()[:16]


def scaled(dataset: Dataset, scale: str) -> Dataset:
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
    chosen = dataset.scale if scale == "default" else scale
    return replace(
        dataset,
        train=_scaled(dataset, dataset.train, chosen),
        test=_scaled(dataset, dataset.test, chosen),
        scale=chosen,
        levels=None,
    )


def normalisation(dataset: Dataset) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """mean and std of z = (x - mean) / std for inputs z of a scaled dataset and x in [0, 1]: one number a channel, or
    one for all.

    Where the values were real numbers from the start, x runs from the smallest to the largest training value.
    """
    known = {"unit": ((0.0,), (1.0,)), "half": ((0.5,), (0.5,)), "standard": (dataset.mean, dataset.std)}
    if dataset.scale in known:
        return known[dataset.scale]
    inputs = _tensor(dataset.train.inputs)
    low, high = float(inputs.min()), float(inputs.max())
    width = high - low if high > low else 1.0
    return (-low / width,), (1 / width,)


def _scaled(dataset: Dataset, samples: Samples, scale: str) -> Samples:
    raw = _tensor(samples.inputs)
    # numpy asks for huge pages: for CIFAR-10, filling fresh memory is several times faster than with torch.empty.
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

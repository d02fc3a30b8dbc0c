"""Shared parts of the models: a classifier of body and head, checks, and the output size of a body."""

from collections.abc import Callable, Collection
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    """head(body(x)): `body` computes features (n, f), `head` is the linear layer to logits (n, C)."""

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(inputs))


def check_image(model: str, shape: tuple[int, ...], least: int) -> None:
    """Require that `shape` is (channels, height, width) with both sides at least `least`.

    Raises:
        ValueError: If it is not.
    """
    if len(shape) != 3 or shape[0] < 1 or min(shape[1:]) < least:
        raise ValueError(
            f"inputs have shape {shape}; {model} takes images (channels, height, width) of at least {least}x{least}."
        )


def check_version(model: str, version: str, versions: Collection[str]) -> None:
    """Require one of the versions of a model.

    Raises:
        ValueError: If there is no such version.
    """
    if version not in versions:
        raise ValueError(f"version is {version!r}; {model} takes {' or '.join(map(repr, versions))}.")


def flat_size(layers: nn.Module, shape: tuple[int, ...]) -> int:
    """Number of output values of `layers` for one input."""
    with torch.no_grad():
        return layers(torch.zeros(1, *shape)).numel()


class Conv(NamedTuple):
    """A convolution without stride, and whether a 2x2 max pool follows it, before ReLU."""

    out: int
    kernel: int
    padding: int = 0
    pool: bool = True


def cnn(name: str, *convolutions: Conv, hidden: tuple[int, ...] = (), least: int) -> Callable[..., Classifier]:
    """The `build` of a plain CNN: these convolutions, dense layers of the `hidden` widths, head; ReLU between all.

    The feature is the output of the last hidden layer, or without one of the last convolution.

    Args:
        name: Public name.
        least: Smallest side of an image.
    """

    def build(shape: tuple[int, ...], classes: int) -> Classifier:
        """The network that the docstring of its file describes.

        Args:
            shape, classes: Of one image, and number of outputs.

        Raises:
            ValueError: If an image is smaller than the network takes.
        """
        check_image(name, shape, least)
        layers, channels = nn.Sequential(), shape[0]
        for out, kernel, padding, pool in convolutions:
            convolution, *rest = pooled(channels, out, kernel, padding=padding)
            layers.extend([convolution, *rest[0 if pool else 1 :]])
            channels = out
        layers.append(nn.Flatten())
        sizes = [flat_size(layers, shape), *hidden]
        layers.extend(dense(*sizes))
        return Classifier(layers, nn.Linear(sizes[-1], classes))

    return build


def pooled(channels: int, out: int, kernel: int, *, padding: int = 0) -> list[nn.Module]:
    """Convolution, 2x2 max pool, ReLU; the pool comes first because it leaves ReLU a quarter of the work."""
    return [nn.Conv2d(channels, out, kernel, padding=padding), nn.MaxPool2d(2), nn.ReLU()]


def normalised(convolution: nn.Conv2d, groups: int, *pool: nn.Module) -> list[nn.Module]:
    """Convolution, group normalisation, the pool where there is one, ReLU."""
    return [convolution, nn.GroupNorm(groups, convolution.out_channels), *pool, nn.ReLU()]


def dense(*sizes: int) -> list[nn.Module]:
    """Linear layers from each size to the next, a ReLU after each."""
    return [layer for before, after in pairwise(sizes) for layer in (nn.Linear(before, after), nn.ReLU())]

"""CNN with two 5x5 convolutions of 64 channels for CIFAR-10 (IMA, Table IV)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv5(C, 64), conv5(64, 64), each pooled; FC 384, FC 128 (feature), FC classes; ReLU throughout.

    772,682 parameters for (3, 32, 32) and 10 classes.

    Raises:
        ValueError: If an image is smaller than 16x16.
    """
    check_image("cnn_cifar10", shape, 16)
    layers = nn.Sequential(*pooled(shape[0], 64, 5), *pooled(64, 64, 5), nn.Flatten())
    layers.extend(dense(flat_size(layers, shape), 384, 128))
    return Classifier(layers, nn.Linear(128, classes))

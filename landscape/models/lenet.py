"""LeNet with two padded 5x5 convolutions for Fashion-MNIST (FedLAW, App. D.3, as coded)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv5 pad 2 (C, 16), conv5 pad 2 (16, 32), each pooled, ReLU (feature); FC classes.

    28,938 parameters for (1, 28, 28) and 10 classes.

    Raises:
        ValueError: If an image is smaller than 4x4.
    """
    check_image("lenet", shape, 4)
    layers = nn.Sequential(*pooled(shape[0], 16, 5, padding=2), *pooled(16, 32, 5, padding=2), nn.Flatten())
    return Classifier(layers, nn.Linear(flat_size(layers, shape), classes))

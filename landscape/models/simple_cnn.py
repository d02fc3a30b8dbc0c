"""SimpleCNN, three 3x3 convolutions for CIFAR (FedLAW, App. D.3)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv3(C, 32) pooled, conv3(32, 64) pooled, conv3(64, 64); FC 64 (feature), FC classes; ReLU throughout.

    122,570 parameters for (3, 32, 32) and 10 classes, 128,420 for 100. The text mentions one pool; its 64x4x4
    features need two.

    Raises:
        ValueError: If an image is smaller than 18x18.
    """
    check_image("simple_cnn", shape, 18)
    layers = nn.Sequential(*pooled(shape[0], 32, 3), *pooled(32, 64, 3), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten())
    layers.extend(dense(flat_size(layers, shape), 64))
    return Classifier(layers, nn.Linear(64, classes))

"""Small CNN with two 3x3 convolutions for 8x8 digits (this project)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv3 pad 1 (C, 16), conv3 pad 1 (16, 32), each pooled; FC 64 (feature), FC classes; ReLU throughout.

    13,706 parameters for (1, 8, 8) and 10 classes.

    Raises:
        ValueError: If an image is smaller than 4x4.
    """
    check_image("cnn_digits", shape, 4)
    layers = nn.Sequential(*pooled(shape[0], 16, 3, padding=1), *pooled(16, 32, 3, padding=1), nn.Flatten())
    layers.extend(dense(flat_size(layers, shape), 64))
    return Classifier(layers, nn.Linear(64, classes))

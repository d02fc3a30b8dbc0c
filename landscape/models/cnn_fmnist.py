"""CNN with two 5x5 convolutions of 32 channels for Fashion-MNIST (IMA, Table IV, as coded)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv5(C, 32), conv5(32, 32), each pooled; FC 384, FC 128 (feature), FC classes; ReLU throughout.

    274,026 parameters for (1, 28, 28) and 10 classes. The table prints the second convolution as (1, 32); it is
    (32, 32) in the code.

    Raises:
        ValueError: If an image is smaller than 16x16.
    """
    check_image("cnn_fmnist", shape, 16)
    layers = nn.Sequential(*pooled(shape[0], 32, 5), *pooled(32, 32, 5), nn.Flatten())
    layers.extend(dense(flat_size(layers, shape), 384, 128))
    return Classifier(layers, nn.Linear(128, classes))

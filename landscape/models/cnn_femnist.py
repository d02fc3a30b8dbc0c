"""CNN with two 3x3 convolutions and one pool for FEMNIST (FedEve, the author's current default)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv3(C, 32), conv3(32, 64) pooled; FC 128 (feature), FC classes; ReLU throughout.

    1,206,590 parameters for (1, 28, 28) and 62 classes.

    Raises:
        ValueError: If an image is smaller than 6x6.
    """
    check_image("cnn_femnist", shape, 6)
    layers = nn.Sequential(nn.Conv2d(shape[0], 32, 3), nn.ReLU(), *pooled(32, 64, 3), nn.Flatten())
    layers.extend(dense(flat_size(layers, shape), 128))
    return Classifier(layers, nn.Linear(128, classes))

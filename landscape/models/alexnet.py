"""AlexNet for CIFAR, a substitute: FedLAW names one and specifies none (this project; FedLAW, App. D.3)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv3 pad 1 (C, 64), (64, 192), (192, 384), (384, 256), (256, 256), pooled after 1, 2 and 5; FC 1024, FC 512.

    ReLU throughout; the feature is the last of the two. 6,976,842 parameters for (3, 32, 32) and 10 classes,
    7,023,012 for 100. Neither the paper nor its code gives the layers (methods.md 5.2): do not compare its AlexNet row
    with this network's numbers.

    Raises:
        ValueError: If an image is smaller than 8x8.
    """
    check_image("alexnet", shape, 8)
    layers = nn.Sequential(
        *pooled(shape[0], 64, 3, padding=1),
        *pooled(64, 192, 3, padding=1),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *pooled(256, 256, 3, padding=1),
        nn.Flatten(),
    )
    layers.extend(dense(flat_size(layers, shape), 1024, 512))
    return Classifier(layers, nn.Linear(512, classes))

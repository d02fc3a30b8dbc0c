"""LeNet5 with its classical layer sizes and ReLU (LeCun et al. 1998; named by the FedEve paper)."""

from __future__ import annotations

from torch import nn

from landscape.models._parts import Classifier, check_image, dense, flat_size, pooled


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv5 pad 2 (C, 6), conv5(6, 16), each pooled; FC 120, FC 84 (feature), FC classes; ReLU throughout.

    66,126 parameters for (1, 28, 28) and 62 classes, 61,706 for 10. The FedEve author's repository has another one:
    `lenet5`.

    Raises:
        ValueError: If an image is smaller than 12x12.
    """
    check_image("lenet5_classical", shape, 12)
    layers = nn.Sequential(*pooled(shape[0], 6, 5, padding=2), *pooled(6, 16, 5), nn.Flatten())
    layers.extend(dense(flat_size(layers, shape), 120, 84))
    return Classifier(layers, nn.Linear(84, classes))

"""ResNet56 for CIFAR, nine basic blocks a stage (FedLAW, App. D.3)."""

from __future__ import annotations

from torch import nn

from landscape.models._resnet import cifar_resnet


def build(shape: tuple[int, ...], classes: int, *, norm: str = "batch", groups: int = 2) -> nn.Module:
    """conv3(C, 16), nine blocks each of 16, 32, 64 channels, mean over the image (feature), FC classes.

    855,770 parameters for (3, 32, 32) and 10 classes, with either normalisation.

    Args:
        shape, classes: Of one image, and number of outputs.
        norm: "batch" as in the paper, or "group", which has no running statistics.
        groups: Of the group normalisation; 2 as in the IMA paper.

    Raises:
        ValueError: If an image is smaller than 8x8, or norm or groups are not known.
    """
    return cifar_resnet("resnet56", shape, classes, blocks=9, norm=norm, groups=groups)

"""Wide ResNet56-4 for CIFAR, nine basic blocks a stage, four times as wide (FedLAW, App. D.3)."""

from __future__ import annotations

from torch import nn

from landscape.models._resnet import cifar_resnet


def build(shape: tuple[int, ...], classes: int, *, norm: str = "batch", groups: int = 2) -> nn.Module:
    """conv3(C, 64), nine blocks each of 64, 128, 256 channels, mean over the image (feature), FC classes.

    13,628,234 parameters for (3, 32, 32) and 10 classes, with either normalisation. The blocks are those of ResNet56,
    normalised after each convolution, not the pre-activation blocks of the Wide ResNet paper.

    Args:
        shape, classes: Of one image, and number of outputs.
        norm: "batch" as in the paper, or "group", which has no running statistics.
        groups: Of the group normalisation; 2 as in the IMA paper.

    Raises:
        ValueError: If an image is smaller than 8x8, or norm or groups are not known.
    """
    return cifar_resnet("wrn56_4", shape, classes, blocks=9, norm=norm, groups=groups, wide=4)

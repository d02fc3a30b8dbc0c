"""ResNet50 with the ImageNet stem and batch normalisation, not pre-trained (LSS; papers.md 5.3)."""

from torch import nn

from landscape.models._resnet import imagenet_resnet


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv7 stride 2 (C, 64), pool, 3, 4, 6, 3 bottlenecks of 256 to 2048 channels, mean (feature), FC classes.

    23,528,522 parameters for 3 channels and 10 classes, 24,214,937 for 345. The paper starts from ImageNet's
    values: model `hf` reads them from a folder or the hub; `fedscape pretrain` trains initial values on your data.

    Raises:
        ValueError: If an image is smaller than 8x8.
    """
    return imagenet_resnet("resnet50", shape, classes, blocks=(3, 4, 6, 3), bottleneck=True)

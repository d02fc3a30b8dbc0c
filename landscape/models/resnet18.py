"""ResNet18 with the ImageNet stem and batch normalisation, not pre-trained (LSS; papers.md 5.3)."""

from torch import nn

from landscape.models._resnet import imagenet_resnet


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv7 stride 2 (C, 64), pool, two basic blocks each of 64 to 512 channels, mean (feature), FC classes.

    11,181,642 parameters for 3 channels and 10 classes. The paper starts from ImageNet's values: model `hf` reads
    them from a folder or the hub; `fedscape pretrain` trains initial values on your data.

    Raises:
        ValueError: If an image is smaller than 8x8.
    """
    return imagenet_resnet("resnet18", shape, classes, blocks=(2, 2, 2, 2), bottleneck=False)

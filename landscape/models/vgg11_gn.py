"""VGG11 with group normalisation for CIFAR (IMA, Table IV)."""

from torch import nn

from landscape.models._blocks import Classifier, check_image, flat_size, normalised
from landscape.models._resnet import LEAST, check_norm

WIDTHS = [64, 128, 256, 512, 512]


def build(shape: tuple[int, ...], classes: int, *, groups: int = 2) -> nn.Module:
    """Eight conv3 with group normalisation and ReLU in five pooled stages, FC 128 without ReLU (feature), FC classes.

    9,292,938 parameters for (3, 32, 32) and 10 classes, 9,304,548 for 100. Pools round up, so that images below
    32x32 keep one pixel.

    Args:
        shape, classes: Of one image, and number of outputs.
        groups: Of every normalisation; 2 in the paper.

    Raises:
        ValueError: If an image is smaller than 8x8, or groups do not divide the channels.
    """
    check_image("vgg11_gn", shape, LEAST)
    check_norm("vgg11_gn", "group", groups, WIDTHS)
    layers, channels = nn.Sequential(), shape[0]
    for stage, width in enumerate(WIDTHS):
        if stage >= 2:  # the first two stages have one convolution
            layers.extend(normalised(nn.Conv2d(channels, width, 3, padding=1), groups))
            channels = width
        pool = nn.MaxPool2d(2, ceil_mode=True)  # before ReLU, which it leaves a quarter of the work
        layers.extend(normalised(nn.Conv2d(channels, width, 3, padding=1), groups, pool))
        channels = width
    layers.append(nn.Flatten())
    layers.append(nn.Linear(flat_size(layers, shape), 128))
    return Classifier(layers, nn.Linear(128, classes))

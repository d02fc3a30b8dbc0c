"""ResNet18 with group normalisation for CIFAR (IMA, Table IV)."""

from torch import nn

from landscape.models._blocks import Classifier, check_image
from landscape.models._resnet import LEAST, check_norm, conv_norm, stages

WIDTHS = [64, 128, 256, 512]


def build(shape: tuple[int, ...], classes: int, *, groups: int = 2, feature: int = 128) -> nn.Module:
    """conv3(C, 64) without pool, two blocks each of 64 to 512 channels, mean, FC 128 (feature), FC classes.

    11,235,786 parameters for (3, 32, 32) and 10 classes, 11,247,396 for 100. Convolutions start Kaiming-normal
    (fan-out).

    Args:
        shape, classes: Of one image, and number of outputs.
        groups: Of every normalisation; 2 in the paper.
        feature: Width of the layer before the head; 0 leaves it out, which is the network of the FedEve paper
            (11,220,132 parameters for 100 classes).

    Raises:
        ValueError: If an image is smaller than 8x8, or groups or feature are not usable.
    """
    check_image("resnet18_gn", shape, LEAST)
    check_norm("resnet18_gn", "group", groups, WIDTHS)
    if feature < 0:
        raise ValueError(f"feature is {feature}; resnet18_gn takes a width >= 1, or 0 for none.")
    stem = [*conv_norm(shape[0], 64, 3, "group", groups), nn.ReLU()]
    layers = nn.Sequential(*stem, *stages(64, WIDTHS, 2, "group", groups), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    if feature > 0:
        layers.append(nn.Linear(WIDTHS[-1], feature))
    for layer in layers.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return Classifier(layers, nn.Linear(feature if feature > 0 else WIDTHS[-1], classes))

"""AlexNet with group normalisation for PACS (IMA, Table IV)."""

from torch import nn

from landscape.models._blocks import Classifier, check_image, check_version, dense, flat_size, normalised
from landscape.models._resnet import check_norm

LEAST = 63
"""Smallest side of an image; below it the last pool has nothing to pool."""


def build(shape: tuple[int, ...], classes: int, *, version: str = "code", groups: int = 32) -> nn.Module:
    """Five convolutions, each normalised, ReLU, three of them pooled; FC layers with ReLU, the last of 512 (feature).

    conv11 stride 4 pad 2 (C, 64), pool3 stride 2; conv5 pad 2 (64, 192), pool3 stride 2; conv3 pad 1 (192, 384),
    (384, 256), (256, 256), pool3 stride 2. No dropout. For (3, 224, 224) and 7 classes the code has FC 1024, FC 512 and
    12,438,599 parameters; the paper's table (which prints 10 outputs and calls the row ResNet18) has AlexNet's FC 4096,
    FC 4096, then FC 512, and 59,107,399. The text says two groups in all models; the code has 32 in this one.

    Args:
        shape, classes: Of one image, and number of outputs.
        version: "code" or "paper".
        groups: Of every normalisation; 32 in the code.

    Raises:
        ValueError: If an image is smaller than 63x63, or an option is not usable.
    """
    hidden = {"code": [1024, 512], "paper": [4096, 4096, 512]}
    check_version("alexnet_gn", version, hidden)
    check_image("alexnet_gn", shape, LEAST)
    check_norm("alexnet_gn", "group", groups, [64, 192, 256, 384])
    layers = nn.Sequential(
        *normalised(nn.Conv2d(shape[0], 64, 11, stride=4, padding=2), groups, nn.MaxPool2d(3, 2)),
        *normalised(nn.Conv2d(64, 192, 5, padding=2), groups, nn.MaxPool2d(3, 2)),
        *normalised(nn.Conv2d(192, 384, 3, padding=1), groups),
        *normalised(nn.Conv2d(384, 256, 3, padding=1), groups),
        *normalised(nn.Conv2d(256, 256, 3, padding=1), groups, nn.MaxPool2d(3, 2)),
        nn.Flatten(),
    )
    layers.extend(dense(flat_size(layers, shape), *hidden[version]))
    return Classifier(layers, nn.Linear(512, classes))

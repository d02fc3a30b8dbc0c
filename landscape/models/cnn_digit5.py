"""CNN with three 5x5 convolutions and group normalisation for Digit-Five (IMA, Table IV)."""

from torch import nn

from landscape.models._blocks import Classifier, check_image, check_version, dense, flat_size, normalised
from landscape.models._resnet import check_norm


def build(shape: tuple[int, ...], classes: int, *, version: str = "code", groups: int = 2) -> nn.Module:
    """conv5 pad 2 (C, 64), (64, 64), (64, 128), each normalised, pooled, ReLU; FC, ReLU, FC 128 (feature), FC classes.

    The code pools three times and has FC 384 before the feature: 806,090 parameters for (3, 28, 28) and 10 classes.
    The paper's table has 6,272 = 128x7x7 inputs, which are two pools, and FC 2048: 13,423,434 parameters. The text
    names five normalisations; there are three.

    Args:
        shape, classes: Of one image, and number of outputs.
        version: "code" or "paper".
        groups: Of every normalisation; 2 in the paper.

    Raises:
        ValueError: If an image is smaller than 8x8 (4x4 in the paper's version), or an option is not usable.
    """
    hidden = {"code": 384, "paper": 2048}
    check_version("cnn_digit5", version, hidden)
    check_image("cnn_digit5", shape, 8 if version == "code" else 4)
    check_norm("cnn_digit5", "group", groups, [64, 128])
    last_pool = [nn.MaxPool2d(2)] if version == "code" else []
    layers = nn.Sequential(
        *normalised(nn.Conv2d(shape[0], 64, 5, padding=2), groups, nn.MaxPool2d(2)),
        *normalised(nn.Conv2d(64, 64, 5, padding=2), groups, nn.MaxPool2d(2)),
        *normalised(nn.Conv2d(64, 128, 5, padding=2), groups, *last_pool),
        nn.Flatten(),
    )
    layers.extend([*dense(flat_size(layers, shape), hidden[version]), nn.Linear(hidden[version], 128)])
    return Classifier(layers, nn.Linear(128, classes))

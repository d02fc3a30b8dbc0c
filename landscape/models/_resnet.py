"""Residual blocks with batch or group normalisation, and the CIFAR and ImageNet residual networks."""

from collections.abc import Callable

from torch import Tensor, nn

from landscape.models._blocks import Classifier, check_image

LEAST = 8
"""Smallest side of an image; below it the deeper stages see nothing but padding."""


class BasicBlock(nn.Module):
    """relu(conv3(relu(conv3(x))) + shortcut(x)), every convolution without bias and normalised.

    The first convolution has the stride. The shortcut is the identity, or a normalised 1x1 convolution where the
    shape changes.

    Source: He et al. 2016, section 3.3, option B.
    """

    def __init__(self, channels: int, out: int, stride: int, norm: str, groups: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *conv_norm(channels, out, 3, norm, groups, stride=stride), nn.ReLU(), *conv_norm(out, out, 3, norm, groups)
        )
        same = stride == 1 and channels == out
        self.shortcut = nn.Sequential(*([] if same else conv_norm(channels, out, 1, norm, groups, stride=stride)))
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        return self.relu(self.residual(inputs) + self.shortcut(inputs))


class Bottleneck(nn.Module):
    """relu(conv1(relu(conv3(relu(conv1(x))))) + shortcut(x)), every convolution without bias, batch-normalised.

    `width` channels inside, four times as many come out. The 3x3 convolution has the stride.

    Source: He et al. 2016, figure 5, with the stride where torchvision and transformers have it.
    """

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.residual = nn.Sequential(
            *(*conv_norm(channels, width, 1, "batch", 1), nn.ReLU()),
            *(*conv_norm(width, width, 3, "batch", 1, stride=stride), nn.ReLU()),
            *conv_norm(width, out, 1, "batch", 1),
        )
        same = stride == 1 and channels == out
        self.shortcut = nn.Sequential(*([] if same else conv_norm(channels, out, 1, "batch", 1, stride=stride)))
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        return self.relu(self.residual(inputs) + self.shortcut(inputs))


def imagenet_resnet(
    name: str, shape: tuple[int, ...], classes: int, *, blocks: tuple[int, ...], bottleneck: bool
) -> Classifier:
    """Stem conv7 of 64 channels with stride 2 and a pool, four stages of `blocks` blocks, mean, head.

    Raises:
        ValueError: If the image is too small.
    """
    check_image(name, shape, LEAST)
    layers = nn.Sequential(*conv_norm(shape[0], 64, 7, "batch", 1, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            if bottleneck:
                layers.append(Bottleneck(channels, width, stride))
            else:
                layers.append(BasicBlock(channels, width, stride, "batch", 1))
            channels = 4 * width if bottleneck else width
    for layer in layers.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    layers.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten()])
    return Classifier(layers, nn.Linear(channels, classes))


def cifar_factory(name: str, *, blocks: int, wide: int = 1) -> Callable[..., Classifier]:
    """The `build` of a CIFAR network of three stages of `blocks` blocks, all channels multiplied by `wide`."""

    def build(shape: tuple[int, ...], classes: int, *, norm: str = "batch", groups: int = 2) -> Classifier:
        """Stem conv3 of 16 channels, three stages of basic blocks with 16, 32, 64 channels, mean (feature), head.

        Args:
            shape, classes: Of one image, and number of outputs.
            norm: "batch" as in the paper, or "group", which has no running statistics.
            groups: Of the group normalisation; 2 as in the IMA paper.

        Raises:
            ValueError: If an image is smaller than 8x8, or norm or groups are not known.
        """
        check_image(name, shape, LEAST)
        widths = [16 * wide, 32 * wide, 64 * wide]
        check_norm(name, norm, groups, widths)
        stem = [*conv_norm(shape[0], widths[0], 3, norm, groups), nn.ReLU()]
        body = [*stem, *stages(widths[0], widths, blocks, norm, groups), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return Classifier(nn.Sequential(*body), nn.Linear(widths[-1], classes))

    return build


def stages(channels: int, widths: list[int], blocks: int, norm: str, groups: int) -> list[nn.Module]:
    """`blocks` basic blocks of each width; every stage but the first begins with stride 2."""
    blocks_in_order: list[nn.Module] = []
    for stage, width in enumerate(widths):
        for block in range(blocks):
            blocks_in_order.append(BasicBlock(channels, width, 2 if stage > 0 and block == 0 else 1, norm, groups))
            channels = width
    return blocks_in_order


def conv_norm(channels: int, out: int, kernel: int, norm: str, groups: int, *, stride: int = 1) -> list[nn.Module]:
    """Convolution without bias that keeps the size (but for its stride), and its normalisation."""
    convolution = nn.Conv2d(channels, out, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(out) if norm == "batch" else nn.GroupNorm(groups, out)]


def check_norm(model: str, norm: str, groups: int, widths: list[int]) -> None:
    """Require a known normalisation, and groups that divide every width.

    Raises:
        ValueError: If either is not the case.
    """
    if norm not in ("batch", "group"):
        raise ValueError(f"norm is {norm!r}; {model} takes 'batch' or 'group'.")
    if groups < 1 or any(width % groups for width in widths):
        raise ValueError(f"groups is {groups}; {model} takes a divisor of its channels {widths}, such as 2.")

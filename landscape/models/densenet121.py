"""DenseNet121 for CIFAR, growth 32 with bottlenecks and compression (FedLAW, App. D.3)."""

import torch
from torch import Tensor, nn

from landscape.models._blocks import Classifier, check_image

BLOCKS = (6, 12, 24, 16)
GROWTH = 32
LEAST = 8


def build(shape: tuple[int, ...], classes: int) -> nn.Module:
    """conv3(C, 64), blocks of 6, 12, 24, 16 dense layers with growth 32, mean (feature, 1024), FC classes.

    Between blocks a 1x1 convolution halves the channels and a mean halves the sides. Convolutions have no bias; batch
    normalisation and ReLU come before each. 6,956,298 parameters for (3, 32, 32) and 10 classes.

    Source: Huang et al. 2017, section 3 (DenseNet-BC), with the stem of its CIFAR networks.

    Raises:
        ValueError: If an image is smaller than 8x8.
    """
    check_image("densenet121", shape, LEAST)
    channels = 2 * GROWTH
    layers = nn.Sequential(nn.Conv2d(shape[0], channels, 3, padding=1, bias=False))
    for block, count in enumerate(BLOCKS):
        if block > 0:
            layers.extend([*_activated(channels, channels // 2, 1), nn.AvgPool2d(2)])
            channels //= 2
        for _ in range(count):
            layers.append(DenseLayer(channels))
            channels += GROWTH
    layers.extend([nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()])
    return Classifier(layers, nn.Linear(channels, classes))


class DenseLayer(nn.Module):
    """The input and, behind it, 32 new channels: conv3(conv1(x)), each after batch normalisation and ReLU.

    The 1x1 convolution has four times as many outputs as the layer adds.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.new = nn.Sequential(*_activated(channels, 4 * GROWTH, 1), *_activated(4 * GROWTH, GROWTH, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.cat([inputs, self.new(inputs)], 1)


def _activated(channels: int, out: int, kernel: int) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, out, kernel, padding=kernel // 2, bias=False)
    return [nn.BatchNorm2d(channels), nn.ReLU(), convolution]

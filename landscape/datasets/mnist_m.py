"""MNIST-M, 59,001 + 9,001 MNIST digits blended with photographs, 32x32 colour (Ganin and Lempitsky 2015).

A copy of the first 5,000 + 1,000 images is accepted too. The default scaling "half" is that of the IMA paper.
"""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="mnist_m",
    repository="Mike0307/MNIST-M",
    shape=(3, 32, 32),
    classes=tuple("0123456789"),
    train=59_001,
    test=9_001,
    scale="half",
    mean=(0.4581, 0.4620, 0.4080),  # of the first 5,000 training images
    std=(0.2493, 0.2340, 0.2560),
    smaller=((5_000, 1_000),),
    fit="squash",
)

load = loader(SOURCE)

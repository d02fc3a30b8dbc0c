"""MNIST, 60,000 + 10,000 handwritten digits, 28x28 grey (LeCun et al. 1998)."""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="mnist",
    repository="ylecun/mnist",
    shape=(1, 28, 28),
    classes=tuple("0123456789"),
    train=60_000,
    test=10_000,
    mean=(0.1307,),  # of the training images
    std=(0.3081,),
)

load = loader(SOURCE)

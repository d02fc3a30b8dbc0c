"""Fashion-MNIST, 60,000 + 10,000 pieces of clothing, 28x28 grey (Xiao et al. 2017)."""

from __future__ import annotations

from pathlib import Path

from landscape.datasets import _images
from landscape.datasets._dataset import Dataset

SOURCE = _images.Source(
    name="fashion_mnist",
    repository="zalando-datasets/fashion_mnist",
    shape=(1, 28, 28),
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    train=60_000,
    test=10_000,
    mean=(0.2860,),  # of the training images
    std=(0.3530,),
)


def load(folder: Path | None = None) -> Dataset:
    """Fashion-MNIST from a data folder, FEDSCAPE_DATA or the hub; see `_images.load`.

    The default scaling [0, 1] is that of the IMA and FedLAW papers.
    """
    return _images.load(SOURCE, folder)

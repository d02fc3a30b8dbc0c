"""Fashion-MNIST, 60,000 + 10,000 pieces of clothing, 28x28 grey (Xiao et al. 2017).

The default scaling [0, 1] is that of the IMA and FedLAW papers.
"""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
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

load = loader(SOURCE)

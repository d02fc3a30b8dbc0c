"""CIFAR-10, 50,000 + 10,000 colour photographs of ten things, 32x32 (Krizhevsky 2009).

The default scaling "standard" is that of the IMA paper; FedLAW and LSS use "half".
"""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="cifar10",
    repository="uoft-cs/cifar10",
    shape=(3, 32, 32),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    train=50_000,
    test=10_000,
    scale="standard",
    mean=(0.491, 0.482, 0.447),  # IMA paper
    std=(0.247, 0.243, 0.262),
)

load = loader(SOURCE)

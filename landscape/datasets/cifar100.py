"""CIFAR-100, 50,000 + 10,000 colour photographs of 100 things in 20 coarse classes, 32x32 (Krizhevsky 2009).

A copy of the first 100 + 20 images of each class is accepted too. The default scaling "standard" is that of the
IMA paper; FedLAW and LSS use "half".
"""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="cifar100",
    repository="uoft-cs/cifar100",
    shape=(3, 32, 32),
    classes=100,
    train=50_000,
    test=10_000,
    scale="standard",
    mean=(0.491, 0.482, 0.447),  # IMA paper: those of CIFAR-10; CIFAR-100's own are .507 .487 .441, .267 .256 .276
    std=(0.247, 0.243, 0.262),
    label="fine_label",
    groups={"coarse": "coarse_label"},
    smaller=((10_000, 2_000),),
)

load = loader(SOURCE)

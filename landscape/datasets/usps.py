"""USPS, 7,291 + 2,007 handwritten digits from envelopes, 16x16 grey (Hull 1994)."""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="usps",
    repository="flwrlabs/usps",
    shape=(1, 16, 16),
    classes=tuple("0123456789"),
    train=7_291,
    test=2_007,
    mean=(0.2539,),  # of the training images
    std=(0.3842,),
)

load = loader(SOURCE)

"""SVHN, 73,257 + 26,032 house numbers cropped to one digit, 32x32 colour (Netzer et al. 2011).

The cropped digits, without the extra ones. The default scaling "half" is that of the IMA paper; "standard" takes mean
and std of the training images.
"""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="svhn",
    repository="ufldl-stanford/svhn",
    shape=(3, 32, 32),
    classes=tuple("0123456789"),
    train=73_257,
    test=26_032,
    scale="half",
    inside="cropped_digits",
)

load = loader(SOURCE)

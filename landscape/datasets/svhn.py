"""SVHN, 73,257 + 26,032 house numbers cropped to one digit, 32x32 colour (Netzer et al. 2011)."""

from __future__ import annotations

from pathlib import Path

from landscape.datasets import _images
from landscape.datasets._dataset import Dataset

SOURCE = _images.Source(
    name="svhn",
    repository="ufldl-stanford/svhn",
    shape=(3, 32, 32),
    classes=tuple("0123456789"),
    train=73_257,
    test=26_032,
    scale="half",
    inside="cropped_digits",
)


def load(folder: Path | None = None) -> Dataset:
    """SVHN's cropped digits, without the extra ones, from a data folder, FEDSCAPE_DATA or the hub; see `_images.load`.

    The default scaling "half" is that of the IMA paper; "standard" takes mean and std of the training images.
    """
    return _images.load(SOURCE, folder)

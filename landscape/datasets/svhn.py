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
    mean=(0.4377, 0.4438, 0.4728),  # of the training images
    std=(0.1980, 0.2010, 0.1970),
    inside="cropped_digits",
)


def load(folder: Path | None = None) -> Dataset:
    """SVHN's cropped digits, without the extra ones, from a data folder, FEDSCAPE_DATA or the hub; see `_images.load`.

    The default scaling "half" is that of the IMA paper.
    """
    return _images.load(SOURCE, folder)

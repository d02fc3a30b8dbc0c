"""Handwritten digits, 1,797 real 8x8 images that come with scikit-learn (UCI optical recognition, test part)."""

from __future__ import annotations

from pathlib import Path

import torch

from landscape.datasets._dataset import Dataset, fingerprint
from landscape.model.samples import Samples


def load(folder: Path | None = None) -> Dataset:
    """1,437 training and 360 test images of shape (1, 8, 8), values 0..16.

    The split is fixed and stratified: of the images sorted by class, every fifth is a test image.

    Args:
        folder: Not used.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    inputs = torch.from_numpy(digits.images).to(torch.uint8).unsqueeze(1)
    targets = torch.from_numpy(digits.target).to(torch.int64)
    is_test = torch.zeros(len(targets), dtype=torch.bool)
    is_test[torch.argsort(targets, stable=True)[::5]] = True
    train, test = Samples(inputs[~is_test], targets[~is_test]), Samples(inputs[is_test], targets[is_test])
    return Dataset(
        name="digits",
        train=train,
        test=test,
        classes=tuple(map(str, range(10))),
        shape=(1, 8, 8),
        fingerprint=fingerprint(train, test),
        levels=16,
        mean=(0.3058,),  # of the training images
        std=(0.3762,),
    )

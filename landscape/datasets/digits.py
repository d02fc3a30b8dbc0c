"""Handwritten digits: 1,797 real 8x8 images, in the file beside this one.

Source: Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits (test part), UCI Machine Learning
Repository, doi 10.24432/C50P49, CC BY 4.0.
"""

from pathlib import Path

import numpy as np
import torch

from landscape.datasets._dataset import Dataset, fingerprint
from landscape.model.samples import Samples

FILE = Path(__file__).with_suffix(".npz")
"""Images (1797, 8, 8), values 0..16, and labels (1797,), uint8."""


def load(folder: Path | None = None) -> Dataset:
    """1,437 training and 360 test images of shape (1, 8, 8), values 0..16.

    The split is fixed and stratified: of the images sorted by class, every fifth is a test image.

    Args:
        folder: Not used.
    """
    with np.load(FILE) as file:
        inputs, targets = torch.from_numpy(file["images"]).unsqueeze(1), torch.from_numpy(file["labels"]).long()
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

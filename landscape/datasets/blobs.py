"""Gaussian classes: points around one random centre per class, for tests and quick looks (synthetic, this project)."""

from math import inf
from pathlib import Path

import torch

from landscape.datasets._dataset import Dataset, fingerprint
from landscape.model.samples import Samples


def load(
    folder: Path | None = None,
    *,
    classes: int = 4,
    features: int = 8,
    samples: int = 400,
    spread: float = 1.0,
    seed: int = 0,
) -> Dataset:
    """Balanced classes: x = centre of the class + spread * N(0, I), the centres drawn from 2 N(0, I).

    Args:
        folder: Not used.
        classes, features: Number of classes, and length of one input.
        samples: Training samples; there are a quarter as many test samples, at least one per class.
        spread: Standard deviation within a class.
        seed: Fixes centres and points.

    Raises:
        ValueError: If an option is out of range.
    """
    for option, value, least in (("classes", classes, 2), ("features", features, 1), ("samples", samples, classes)):
        if type(value) is not int or value < least:
            raise ValueError(f"{option} is {value!r}; blobs takes a whole number, {option} >= {least}.")
    if not isinstance(spread, int | float) or not 0 < spread < inf:
        raise ValueError(f"spread is {spread!r}; blobs takes spread > 0.")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed!r}; blobs takes a whole number from 0 to 2**63 - 1.")
    generator = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(classes, features, generator=generator)

    def sample(count: int) -> Samples:
        targets = torch.arange(count) % classes
        return Samples(centres[targets] + spread * torch.randn(count, features, generator=generator), targets)

    train, test = sample(samples), sample(max(classes, samples // 4))
    return Dataset(
        name="blobs",
        train=train,
        test=test,
        classes=tuple(map(str, range(classes))),
        shape=(features,),
        fingerprint=fingerprint(train, test),
        scale="default",
        levels=None,
    )

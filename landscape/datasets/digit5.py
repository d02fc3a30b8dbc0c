"""Digit-Five: digits from MNIST, SVHN, USPS, SynthDigits and MNIST-M with domain labels (Peng et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from landscape.datasets import _union
from landscape.datasets._dataset import Dataset

DOMAINS = ("mnist", "svhn", "usps", "synthdigits", "mnist_m")


def load(
    folder: Path | None = None,
    *,
    domains: Sequence[str] = DOMAINS,
    size: int = 28,
    train_per_domain: int | None = None,
    test_per_domain: int | None = None,
    test_per_class: int | None = 1000,
) -> Dataset:
    """Five domains one after the other, 28x28 with three channels, scaled by "half"; the files are those of the five.

    Source: methods.md 6.1. The defaults are the IMA paper's; LSS has size 32, train_per_domain 25,000 and
    test_per_domain 9,000 (it repeats USPS to reach them, which is not done here: copies would leak into the test set).

    Args:
        folder: Data folder.
        domains: Those that are used, in this order.
        size: Height and width in pixels; images of another size are resized.
        train_per_domain, test_per_domain: Images of each domain, the first ones; by default all.
        test_per_class: Test images of each class and domain, the first ones.

    Raises:
        ValueError: If an option is out of range.
        LookupError: If a domain's files are absent.
    """
    return _union.union("digit5", domains, DOMAINS, folder, size, train_per_domain, test_per_domain, test_per_class)

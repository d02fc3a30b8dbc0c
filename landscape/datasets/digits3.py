"""Digits of three domains, MNIST, USPS and MNIST-M, of one size (part of Digit-Five, Peng et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from landscape.datasets import _union
from landscape.datasets._dataset import Dataset

DOMAINS = ("mnist", "usps", "mnist_m")


def load(
    folder: Path | None = None,
    *,
    domains: Sequence[str] = DOMAINS,
    size: int = 28,
    train_per_domain: int | None = None,
    test_per_domain: int | None = None,
    test_per_class: int | None = 1000,
) -> Dataset:
    """The domains one after the other; see `digit5`, whose options and defaults these are."""
    return _union.union("digits3", domains, DOMAINS, folder, size, train_per_domain, test_per_domain, test_per_class)

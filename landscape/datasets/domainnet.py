"""DomainNet, 409,832 + 176,743 pictures of 345 things in six domains (Peng et al. 2019)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from landscape.datasets import _images, _split
from landscape.datasets._dataset import Dataset, select_samples
from landscape.datasets._source import read_source

SOURCE = read_source("domainnet")


def load(
    folder: Path | None = None,
    *,
    domains: Sequence[str] | None = None,
    size: int = 64,
    train_per_domain: int | None = None,
    test_per_domain: int | None = None,
) -> Dataset:
    """DomainNet with domains from a data folder, FEDSCAPE_DATA or the hub; see `_images.load`.

    Images are resized to 64x64 as in the LSS paper, without its random crops and flips. All of them take 7.2 GB of
    memory, and four times as much as real numbers: choose domains, or fewer images of each.

    Args:
        folder: Data folder.
        domains: Those that are used, in this order; by default all. LSS uses five and names none.
        size: Height and width in pixels.
        train_per_domain, test_per_domain: Images of each domain, the first ones; by default all.

    Raises:
        ValueError: If an option is out of range.
    """
    _split.require_size("domainnet", size)
    _split.require_counts("domainnet", train_per_domain=train_per_domain, test_per_domain=test_per_domain)
    dataset = _split.select_domains(_images.load(replace(SOURCE, shape=(3, size, size)), folder), domains)
    if train_per_domain is None and test_per_domain is None:
        return dataset
    group = dataset.groups["domain"]
    return select_samples(
        dataset, _split.first(group.train, train_per_domain), _split.first(group.test, test_per_domain)
    )

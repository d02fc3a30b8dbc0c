"""PACS, 9,991 pictures of seven things in four domains: photo, art painting, cartoon, sketch (Li et al. 2017)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from landscape.datasets import _images, _split
from landscape.datasets._dataset import Dataset
from landscape.datasets._source import read_source

SOURCE = read_source("pacs")


def load(
    folder: Path | None = None,
    *,
    domains: Sequence[str] | None = None,
    size: int = 224,
    test_share: float = 0.1,
    seed: int = 1,
) -> Dataset:
    """PACS with domains from a data folder, FEDSCAPE_DATA or the hub; see `_images.load`.

    Images are resized to 256 on the shorter side and cropped to the central 224, as in the IMA paper; all of PACS
    then takes 1.5 GB of memory, and 6 GB as real numbers. PACS has no test set: a random part of each domain is used.
    A copy of 25 images per domain and class is accepted too.

    Args:
        folder: Data folder.
        domains: Those that are used, in this order; by default all.
        size: Height and width in pixels; the resizing keeps the ratio 256 : 224.
        test_share: Of each domain's images that are test images, a fraction 0-1 (IMA 0.1).
        seed: Of the test images (IMA 1, with another generator).

    Raises:
        ValueError: If an option is out of range.
    """
    _split.require_size("pacs", size)
    _split.require_share("pacs", "test_share", test_share)
    unsplit = _images.load(replace(SOURCE, shape=(3, size, size)), folder)
    splits = _split.split_by_group(unsplit.groups["domain"].train, test_share, seed)
    return _split.select_domains(_split.with_test(unsplit, *splits), domains)

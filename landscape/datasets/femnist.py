"""FEMNIST, 814,277 digits and letters by some 3,600 writers, 28x28 grey (Caldas et al. 2018)."""

from dataclasses import replace
from pathlib import Path

from landscape.datasets import _images, _split
from landscape.datasets._dataset import Dataset
from landscape.datasets._source import read_source
from landscape.model.samples import Samples, leaves

SOURCE = read_source("femnist")


def load(folder: Path | None = None, *, writers: int | None = None, test_share: float = 0.1, seed: int = 0) -> Dataset:
    """FEMNIST by writer from a data folder, FEDSCAPE_DATA or the hub; see `_images.load`.

    Background is 0 and ink 255: files that are the other way round, as LEAF's are, are inverted. There is no test
    set: a random part of each writer is used. FedEve's copy has 3,400 writers, 671,585 + 77,483 images.

    Args:
        folder: Data folder.
        writers: The N with the most images (of equals those that come first); by default all.
        test_share: Of each writer's images that are test images, rounded down, a fraction 0-1.
        seed: Of the test images.

    Raises:
        ValueError: If an option is out of range.
    """
    _split.require_counts("femnist", writers=writers)
    _split.require_share("femnist", "test_share", test_share)
    unsplit = _select_writers(_images.load(SOURCE, folder), writers)
    return _split.with_test(_upright(unsplit), *_split.split_by_group(unsplit.groups["user"].train, test_share, seed))


def _select_writers(dataset: Dataset, writers: int | None) -> Dataset:
    group = dataset.groups["user"]
    if writers is None or writers == len(group.names):
        return dataset
    if writers > len(group.names):
        raise ValueError(f"writers is {writers}; femnist has {len(group.names)}.")
    order = group.train.bincount(minlength=len(group.names)).argsort(descending=True, stable=True)
    return _split.select_groups(dataset, "user", order[:writers].sort().values.tolist())


def _upright(dataset: Dataset) -> Dataset:
    """The dataset with a dark background."""
    (inputs,) = leaves(dataset.train.inputs)
    if inputs.float().mean() < 127.5:
        return dataset
    return replace(dataset, train=Samples(inputs.bitwise_not(), dataset.train.targets))  # 255 - x, without a copy more

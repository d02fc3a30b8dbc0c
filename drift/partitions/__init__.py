"""Partitions: which client holds which samples. One file is one partition, its name is its public name.

A file holds the class `Partition`, a `Partitioner` whose fields are the options; `fedscape list partitions` lists them.
"""

from collections.abc import Sequence

import numpy as np

from drift.partitions._partitioner import Partitioner, require_samples
from drift.plugins import trust
from landscape import plugins

__all__ = ["Partitioner", "histogram", "load", "names", "require_samples"]


def names() -> list[str]:
    """Names of all partitions, sorted."""
    return plugins.names(__name__)


def load(name: str) -> type[Partitioner]:
    """The class of the partition called `name`; its fields are the options.

    Args:
        name: One of this package, an entry point, FILE.py:CLASS or module:CLASS.

    Raises:
        ValueError: If there is none; the message lists all and the nearest one. Or if it is code that is not trusted.
    """
    if (partition := trust.load(__name__, name, "partition")) is not None:
        return plugins.require_derived(partition, Partitioner, name)  # type: ignore[type-abstract]
    module = plugins.load(__name__, name, "partition")
    return plugins.single_class(module, Partitioner)  # type: ignore[type-abstract]  # asks for subclasses, makes none


def histogram(labels: np.ndarray, parts: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """Number of samples per client and class.

    Args:
        labels: Class of every sample, shape (n,); -100 does not count.
        parts: Sample numbers of each of the K clients.
        classes: Number of classes, C.

    Returns:
        Counts, shape (K, C), int64.

    Raises:
        ValueError: If a label is not in 0..C-1.
    """
    from landscape.model.losses import IGNORED  # loads torch, which names of partitions do without

    labels = np.asarray(labels)
    used = labels[labels != IGNORED]
    if used.size and not 0 <= used.min() <= used.max() < classes:
        raise ValueError(f"labels run from {used.min()} to {used.max()}; {classes} classes are 0 to {classes - 1}.")
    shifted = np.where(labels == IGNORED, classes, labels)
    return np.stack([np.bincount(shifted[numbers], minlength=classes + 1)[:classes] for numbers in parts])

"""Which entries of a tensor a narrower client has; numpy only."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Narrow = bool | Mapping[str, Any]
"""Whether smaller tensors are leading blocks (HeteroFL); or by name their indices in the whole tensor, a list for each
axis, as of the windows of FedRolex."""


def entry_index(narrow: Narrow, name: str, shape: tuple[int, ...], smaller: tuple[int, ...]) -> tuple[Any, ...]:
    """Index of the entries of a tensor that one of a smaller shape has; axes that are not stated are complete.

    Raises:
        ValueError: If the indices are no lists of different ones of the tensor.
    """
    if isinstance(narrow, bool):
        return tuple(map(slice, smaller))[: len(shape)]
    stated = narrow.get(name, [])
    axes = [np.asarray(axis) for axis in stated] if isinstance(stated, list | tuple) else [np.zeros(())]
    sizes = zip(axes, shape, strict=False) if all(axis.ndim == 1 and axis.dtype.kind in "iu" for axis in axes) else ()
    if [len(axis) for axis, size in sizes if len({*axis} & {*range(size)}) == len(axis)] != [*map(np.size, axes)]:
        what = f"narrow states {stated!r:.60} of tensor {name!r} of shape {shape}"
        raise ValueError(f"{what}; give a list of different indices for each axis, as in [[2, 3, 0], [0, 1]].")
    return np.ix_(*axes)

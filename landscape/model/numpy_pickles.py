"""`unpickled_array`: arrays of numpy in a pickle that was read as inert data."""

from math import prod
from typing import Any

import numpy as np
import torch

from landscape.model.inert_pickle import Inert

_CALLS = ("multiarray._reconstruct", "multiarray.scalar")
"""What a pickle calls for an array and a number of numpy, under `numpy.core` or `numpy._core`."""


def unpickled_array(value: Any) -> Any:
    """The tensor of an array or number of numpy; anything else, also an array of objects, as it is.

    Source: `numpy.ndarray.__reduce__`: a state (version, shape, dtype, whether columns come first, bytes).

    Raises:
        ValueError: If the array states another size than it has.
    """
    if not isinstance(value, Inert) or not value.name.startswith("numpy.") or not value.name.endswith(_CALLS):
        return value
    state: Any = value.state
    if value.name.endswith("scalar"):
        state = (0, (), value.arguments[0], False, value.arguments[1])
    _, shape, kind, columns_first, stored = state
    if not isinstance(kind, Inert) or str(kind.arguments[0])[0] not in "fiubc":
        return value
    settings: Any = kind.state  # (3, byte order, ..)
    dtype = np.dtype(kind.arguments[0]).newbyteorder(settings[1])
    text = (*stored.arguments, b"")[0] if isinstance(stored, Inert) else stored  # _codecs.encode(text, "latin1")
    content = text.encode("latin1") if isinstance(text, str) else text
    if not isinstance(content, bytes | bytearray) or prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"an array of numpy of shape {shape} does not have the bytes that it states")
    array = np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))
    return torch.from_numpy(array.reshape(shape, order="F" if columns_first else "C").copy())

"""Numbers as a page carries them."""

import base64
import gzip
from collections.abc import Sequence

import numpy as np


def packed(values: Sequence[float] | np.ndarray) -> str:
    """Numbers as little-endian float32 in base64, in C order; those beyond its range are infinite."""
    with np.errstate(over="ignore"):
        return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


def zipped(content: bytes) -> str:
    """Bytes as gzip in base64, the same for the same bytes."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def finite(value: float) -> float | None:
    """A number for JSON: None where it is not finite."""
    return float(value) if np.isfinite(value) else None

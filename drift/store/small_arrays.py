"""Small arrays of a round file: cohort, weights, Gram matrix and numbers, read in one piece without the models.

The writer puts the widest types first (`drift.store.numpy_files.write_contents`), so these arrays stand at the start of
a file. Their names and places are checked, their digest is not: it covers the models as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from drift.store import links
from drift.store.numpy_files import Damaged, description, require_known
from drift.store.paths import require_inside

FIRST_PIECE = 1 << 14
"""Bytes that are read at once; header and arrays of most rounds are within them."""

LONGEST_HEADER = 1 << 22
"""Bytes of a header that is read; that of a model of 10,000 tensors is shorter."""

LARGEST_EXTRA = 1 << 12
"""Count of numbers up to which what a method recorded counts as small."""

ALIGNMENT = 64
"""Bytes that a processor reads at once, at most."""

_TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
_ANEW = "See fedscape verify --repair."


@dataclass(frozen=True)
class SmallArrays:
    """What a round file states beside its models.

    Args:
        index: Number of the round.
        run, before: Identity of its run and link of the round before it; None in files of earlier versions.
        arrays: `ids`, `sizes`, `weights` (m,), `gram` (m + 3, m + 3), `metric.NAME` () and small `extras.NAME`.
    """

    index: int
    run: str | None
    before: str | None
    arrays: Mapping[str, np.ndarray]

    @property
    def link(self) -> str:
        """Link of the round, by which the next file names it."""
        return links.link(self.index, self.arrays)

    def numbers(self) -> dict[str, float]:
        """Metrics by name, and what the method recorded as one number."""
        named = {name.partition(".")[2]: value for name, value in self.arrays.items() if value.ndim == 0}
        return {name: float(value) for name, value in named.items()}


def read_small_arrays(path: Path) -> SmallArrays:
    """The small arrays of a round file.

    Raises:
        Damaged: If it is absent, truncated, no round file, or of a later version.
    """
    try:
        if path.is_symlink():
            require_inside(path, path.parent.parent)
        with open(path, "rb", buffering=0) as file:
            return _read(path, file)
    except FileNotFoundError as reason:
        raise Damaged(path, "is missing", _ANEW) from reason
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as reason:
        if isinstance(reason, Damaged):
            raise
        raise Damaged(path, f"cannot be read ({reason}); it is truncated or no round of a run", _ANEW) from reason


def _read(path: Path, file: BinaryIO) -> SmallArrays:
    piece = file.read(FIRST_PIECE)
    length = int.from_bytes(piece[:8], "little")
    if len(piece) < 8 or length > LONGEST_HEADER:
        raise ValueError("its header is cut")
    if 8 + length > len(piece):
        piece += file.read(8 + length + FIRST_PIECE - len(piece))
    header = json.loads(piece[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    require_known(path, metadata.get("format"))
    wanted = {name: entry for name, entry in header.items() if _is_small(name, entry)}
    size, whole = os.fstat(file.fileno()).st_size, 8 + length + _end(header)
    if size != whole:
        raise ValueError(f"it has {size} bytes, and its header speaks of {whole}")
    end = 8 + length + _end(wanted)
    if end > len(piece):
        piece += file.read(end - len(piece))
    arrays = {name: _array(piece, 8 + length, entry) for name, entry in wanted.items()}
    if not set(links.LINKED) <= set(arrays):
        raise ValueError("it has no cohort")
    about = description(path, metadata, _ANEW)
    run, before = about.get("run"), about.get("before")
    return SmallArrays(
        int(about["round"]), None if run is None else str(run), None if before is None else str(before), arrays
    )


def _end(entries: Mapping[str, Mapping[str, Any]]) -> int:
    """Place in the data of a file behind all of these tensors."""
    return max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)


def _is_small(name: str, entry: Mapping[str, Any]) -> bool:
    if name in links.LINKED or name.startswith("metric."):
        return entry["dtype"] in _TYPES
    return name.startswith("extras.") and entry["dtype"] in _TYPES and prod(entry["shape"]) <= LARGEST_EXTRA


def _array(piece: bytes, base: int, entry: Mapping[str, Any]) -> np.ndarray:
    """An array as far from a multiple of ALIGNMENT as in a mapped file, so that products of it have the same bits."""
    first, last = (base + offset for offset in entry["data_offsets"])
    memory = np.empty(last - first + ALIGNMENT, np.uint8)
    shift = (first - memory.ctypes.data) % ALIGNMENT
    values = memory[shift : shift + last - first]
    values[:] = np.frombuffer(piece, np.uint8, last - first, first)
    return values.view(_TYPES[entry["dtype"]]).reshape(entry["shape"])

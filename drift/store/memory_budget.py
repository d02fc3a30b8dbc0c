"""How much memory client models may take; what is larger stays in files and is read by blocks of parameters.

Results do not depend on it: sums over client models have one order of their terms.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import torch

VARIABLE = "FEDSCAPE_MEMORY"
"""Environment variable with the budget, such as 2GB; processes that this one starts have the same."""

SHARE = 0.5
"""Part of the free memory that is the budget where none is stated."""

ROUNDS = 4
"""Rounds in memory at once: one that trains, and those that are being written or read."""

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def budget() -> int:
    """Bytes that client models may take in this process: those stated by `limited` or the variable, else half of the
    free memory.

    Raises:
        ValueError: If the variable is no size.
    """
    stated = os.environ.get(VARIABLE, "")
    return parse_size(stated, VARIABLE) if stated else int(SHARE * psutil.virtual_memory().available)


def fits(dtype: torch.dtype, shape: tuple[int, ...]) -> bool:
    """Whether the client models of a round, or a tensor like them, are to be in memory at once."""
    return os.name == "nt" or ROUNDS * prod(shape) * dtype.itemsize <= budget()  # Windows renames no mapped file


def return_free_memory() -> None:
    """Return to the system what is free within the heap of this process, where the C library can (glibc).

    Between models that come and go, small values that stay split the heap: the next model finds no gap that is large
    enough, and the heap grows with every client.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    return None if os.name == "nt" else getattr(ctypes.CDLL(None), "malloc_trim", None)


@contextmanager
def limited(size: str | None) -> Iterator[None]:
    """Context with a budget, such as "2GB"; None: the one before.

    Raises:
        ValueError: If it is no size.
    """
    if size is None:
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(parse_size(size))
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def parse_size(text: str, name: str = "memory") -> int:
    """Bytes of a size such as 500MB, 2GB or 1.5GiB.

    Raises:
        ValueError: If it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(|[KMGT]B|[KMG]iB)", text.strip(), re.IGNORECASE)
    if match is None or not (size := int(float(match[1]) * _UNITS[match[2].upper()])):
        raise ValueError(f"{name} is {text!r}; give a size above 0, such as 500MB, 2GB or 1.5GiB.")
    return size

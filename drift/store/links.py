"""What a run is called in its files, and by what a round is named by the one after it; needs numpy alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.store.numpy_files import digest

LINKED = ("gram", "ids", "sizes", "weights")
"""Arrays that the link of a round covers: stored for every round, and the same when the round is computed again."""


def identity(about: Mapping[str, Any]) -> str:
    """Text that identifies a run, from the content of its run.json; "" where that has none, as in older recorded runs.

    It is the hash of the settings with a digest of the data's fingerprint, or what a recorder or an importer wrote.
    The name of the folder is no part of it, so that a run can be copied and renamed.
    """
    if isinstance(about.get("run"), str):
        return str(about["run"])
    if "hash" not in about:
        return ""
    return f"{about['hash']}-{hashlib.sha256(str(about.get('fingerprint')).encode()).hexdigest()[:8]}"


def link(index: int, arrays: Mapping[str, np.ndarray]) -> str:
    """Digest of a round's number, cohort, weights and Gram matrix, 32 hexadecimal digits.

    The Gram matrix holds all inner products of start, step and client updates, so another round has another one.

    Args:
        index: Number of the round.
        arrays: `LINKED` at least, as stored.
    """
    return digest({name: arrays[name] for name in LINKED}, str(index))[:32]


def origin(run: str, before: str) -> dict[str, str]:
    """Header fields by which a file names its run and the link of the round before; none for a run without identity."""
    return {"run": run, "before": before} if run else {}

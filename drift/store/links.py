"""Identity of a run and links of its rounds, by which files name their run and the previous round."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.store.numpy_files import contents, digest_contents

LINKED = ("gram", "ids", "sizes", "weights")
"""Arrays that the link of a round is computed from: stored for every round, the same when it is computed again."""

DIGITS = 32
"""Hexadecimal digits of a link."""


def identity(about: Mapping[str, Any]) -> str:
    """Text that identifies a run, from the content of its run.json; "" in older recorded runs.

    It is the hash of the settings with a digest of the data's fingerprint, or the name by a recorder or an importer.
    It does not depend on the name of the folder, so that a run can be copied and renamed.
    """
    if isinstance(about.get("run"), str):
        return str(about["run"])
    if "hash" not in about:
        return ""
    return f"{about['hash']}-{hashlib.sha256(str(about.get('fingerprint')).encode()).hexdigest()[:8]}"


def link(index: int, arrays: Mapping[str, np.ndarray]) -> str:
    """Digest of a round's number, cohort, weights and Gram matrix, 32 hexadecimal digits.

    The Gram matrix has all inner products of start, step and client updates, which differ between rounds.

    Args:
        index: Number of the round.
        arrays: Stored arrays of the round, at least `LINKED`.
    """
    return digest_contents(contents({name: arrays[name] for name in LINKED}), str(index))[:DIGITS]


def origin(run: str, before: str) -> dict[str, str]:
    """Header fields by which a file names its run and the link of the round before; none for a run without identity."""
    return {"run": run, "before": before} if run else {}

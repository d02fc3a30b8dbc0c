"""Identity of a run and links of its rounds, by which files name their run and the previous round."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.store.digests import contents, json_digest, small_digests

DIGITS = 32
"""Hexadecimal digits of a link."""


def identity(about: Mapping[str, Any]) -> str:
    """Text that identifies a run, from the content of its run.json; "" where that names none.

    It is the hash of the settings with a digest of the data's fingerprint and of the versions that train it, or the
    name by a recorder or an importer. It does not depend on the name of the folder, so that a run can be copied and
    renamed.
    """
    if isinstance(about.get("run"), str):
        return str(about["run"])
    if "hash" not in about:
        return ""
    return f"{about['hash']}-{json_digest([about.get('fingerprint'), about.get('versions')])[:8]}"


def name_by(link: str, versions: Mapping[str, str]) -> str:
    """Name of a run of another program, by the link of its first round and the versions that record it."""
    return json_digest([link, dict(versions)])[:DIGITS]


def link(index: int, arrays: Mapping[str, np.ndarray]) -> str:
    """Digest of a round's number, cohort, weights, Gram matrix and metrics, 32 hexadecimal digits.

    The Gram matrix has all inner products of start, step and client updates, which differ between rounds. The same
    bits computed again have the same link: the seconds that they took are not part of it.

    Args:
        index: Number of the round.
        arrays: Stored arrays of the round, of which others have no say.
    """
    return link_by(index, small_digests(contents(arrays))[0])


def link_by(index: int, small: str) -> str:
    """The same by the first one of `drift.store.digests.small_digests`."""
    return hashlib.sha256(f"{index} {small}".encode()).hexdigest()[:DIGITS]


def head(before: str, link: str) -> str:
    """What names all rounds of a run up to one of them: digest of that of the rounds before it ("") and its link."""
    return hashlib.sha256(f"{before} {link}".encode()).hexdigest()[:DIGITS]


def origin(run: str, before: str) -> dict[str, str]:
    """Header fields by which a file names its run and the link of the round before it; "" where there is none."""
    return {"run": run, "before": before}

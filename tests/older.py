"""Stores as versions wrote them whose files named neither their run nor the round before."""

from __future__ import annotations

import shutil
from pathlib import Path

from drift.store import files, round_headers

STORED = Path(__file__).parent / "older_runs"
"""Runs that commit 345e1f0 trained: whole, packed (format 2), and two that were stopped after two rounds of four."""


def copied(place: Path, name: str) -> Path:
    """A copy of a stored run whose name begins so."""
    (source,) = STORED.glob(f"{name}*")
    return Path(shutil.copytree(source, place / source.name))


def without_names(folder: Path, upto: int | None = None) -> None:
    """Rewrite the files of a run as those versions did; `upto`: rounds before this one only, and not the state."""
    for index in round_headers.round_numbers(folder):
        if upto is None or index < upto:
            path = files.round_path(folder, index)
            tensors, _ = files.read_tensors(path)
            files.write_tensors(path, {name: value.clone() for name, value in tensors.items()}, {"round": index})
    if upto is None:
        tensors, about = files.read_tensors(folder / files.STATE)
        copies = {name: value.clone() for name, value in tensors.items()}
        files.write_tensors(folder / files.STATE, copies, {"next": about["next"]})

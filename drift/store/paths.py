"""Places of a run's files in its folder; imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from drift.store.numpy_files import Damaged

STATE = "state.safetensors"
"""Name of the commit point in a run's folder."""


def round_path(folder: Path, index: int) -> Path:
    """File of round `index`."""
    return folder / round_file(index)


def round_file(index: int) -> str:
    """Path of the file of round `index` inside the run's folder."""
    return f"rounds/{index:06d}.safetensors"


def require_inside(path: Path, folder: Path) -> None:
    """Raise Damaged for a link out of the run's folder: a run from elsewhere reads its own files only."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Damaged(path, f"leads out of {folder}, which is not followed", "Put the file itself in its place.")

"""The scene of some folders as it was read last, so that a page shows it before torch is loaded."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drift.store import paths
from landscape.results.atomic_write import write_bytes
from landscape.results.user_folder import cache_folder

MOST = 20
"""Scenes that are stored, those of the folders that were opened last."""


def identity(folders: Sequence[Path]) -> str:
    """Digest of the files that a scene is read from, as they are now, and of the code that reads it."""
    runs = [run for folder in folders for run in sorted([*folder.glob("run.json"), *folder.glob("*/run.json")])]
    home = Path(__file__).resolve().parents[3]
    code = [file for name in ("drift", "figures", "landscape") for file in sorted((home / name).rglob("*.py"))]
    files = [*runs, *(run.with_name(paths.STATE) for run in runs), *code]
    return hashlib.sha256(repr([(str(file), paths.stamp(file)) for file in files]).encode()).hexdigest()


def stored_scene(folders: Sequence[Path]) -> dict[str, Any] | None:
    """The scene of these folders, if no run has changed since it was stored."""
    with contextlib.suppress(OSError, ValueError, LookupError):  # none, or a damaged one
        content = json.loads(_file(folders).read_text(encoding="utf-8"))
        if content["identity"] == identity(folders):
            return dict(content["scene"])
    return None


def store_scene(folders: Sequence[Path], before: str, scene: dict[str, Any]) -> None:
    """Store a whole scene, where its runs are as they were `before` it was read, and none of them changes with time."""
    if scene["problems"] or {run["state"] for run in scene["runs"]} & {"growing", "damaged"}:
        return
    with contextlib.suppress(OSError):  # a cache that cannot be written is left out
        file = _file(folders)
        if before == identity(folders):
            write_bytes(file, json.dumps({"identity": before, "scene": scene}).encode())
        scenes = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        for oldest in scenes[:-MOST]:
            oldest.unlink(missing_ok=True)


def _file(folders: Sequence[Path]) -> Path:
    name = hashlib.sha256(repr([str(folder.resolve()) for folder in folders]).encode()).hexdigest()[:32]
    return cache_folder() / "explore" / f"{name}.json"

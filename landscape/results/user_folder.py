"""The cache folder of the user, and a secret in it by which what this user stored is told from what others made.

Imports the standard library only.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

LENGTH = 32
"""Bytes of the secret."""


def cache_folder() -> Path:
    """FEDSCAPE_CACHE, else `fedscape` in the platform's cache folder of the user."""
    if configured := os.environ.get("FEDSCAPE_CACHE"):
        return Path(configured).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fedscape"
    variable, otherwise = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / otherwise) / "fedscape"


def secret() -> bytes:
    """The user's secret on this machine, made at the first call; one of this call alone where none can be stored."""
    path, fresh = cache_folder() / "secret", secrets.token_bytes(LENGTH)
    begun = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            begun.unlink(missing_ok=True)
            with open(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(fresh)
            begun.replace(path)
        if len(stored := path.read_bytes()) == LENGTH:
            return stored
    return fresh

"""The cache folder of the user.

Imports the standard library only.
"""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """FEDSCAPE_CACHE, else `fedscape` in the platform's cache folder of the user."""
    if configured := os.environ.get("FEDSCAPE_CACHE"):
        return Path(configured).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fedscape"
    variable, otherwise = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / otherwise) / "fedscape"

"""Results of a run whose folder takes no files: that they are not stored is said once."""

from __future__ import annotations

import errno
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drift.runs.run import Run

ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
"""Numbers of the errors of a file system that takes no file."""


def say(run: Run, why: str) -> None:
    """Say once per folder and process that results are not stored."""
    if (folder := run.folder.resolve()) in _WARNED:
        return
    _WARNED.add(folder)
    text = f"{run.name} {why}: results are computed, and not stored."
    if run.context.announce is not None:
        run.context.announce(text)
    else:
        warnings.warn(text, stacklevel=4)


_WARNED: set[Path] = set()
"""Folders of which `say` has spoken."""

"""Checks of what a command is asked for, before anything is computed."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile


def require_names(experiment: str, *settings: Sequence[str] | None) -> None:
    """Refuse unknown experiments, methods, partitions, datasets and models, before anything heavy is loaded.

    Args:
        settings: Texts like method=ima or method=fedavg,ima, as --set and --grid take them.

    Raises:
        LookupError: If there is no such experiment.
        ValueError: If a setting names what there is not.
    """
    from drift.config.shipped import experiment_file
    from drift.plugins.tables import require_named

    experiment_file(experiment)
    for texts in settings:
        for text in texts or ():
            require_named(text)


def require_folder(path: Path) -> None:
    """Refuse a folder that could not be made or written into, before anything is computed; nothing is left behind.

    Raises:
        OSError: If it is a file, or what there is of its path cannot be written into.
    """
    existing = next(parent for parent in (path, *path.absolute().parents) if os.path.lexists(parent))
    try:
        with TemporaryFile(dir=existing):
            pass
    except FileNotFoundError as reason:  # a place that is there and takes no files, such as /proc
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(existing)) from reason
    except OSError as reason:
        raise OSError(reason.errno, reason.strerror, str(existing)) from reason


def require_file(path: Path) -> None:
    """Refuse a file that could not be written, before anything is computed.

    Raises:
        OSError: If it is a folder, or its own folder could not be made or written into.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    require_folder(path.absolute().parent)

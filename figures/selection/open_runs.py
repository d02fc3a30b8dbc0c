"""A run for figures: a folder, or the file of a finished run that a campaign wrote."""

from pathlib import Path
from typing import Any, cast

from drift.claims.campaign import records
from drift.runs import run as runs


def open_run(path: str | Path, **options: Any) -> runs.Run:
    """The run of a folder, or of a file of `fedscape reproduce`.

    A file has the numbers of every round and the results that claims read. Figures of these numbers can be drawn from
    it; what needs models or data raises LookupError.

    Args:
        path: A folder with run.json, or a file such as those of docs/results/data.
        options: Of `drift.open`; a file has no use for them.
    """
    path = Path(path)
    return cast(runs.Run, records.read(path)) if path.is_file() else runs.open(path, **options)

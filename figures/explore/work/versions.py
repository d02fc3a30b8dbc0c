"""Which round is meant by a name and a number: a run that was replaced under its name has another one."""

from collections.abc import Hashable

from drift.runs.run import Run
from drift.store import files
from drift.store.round_headers import read_small_arrays


def round_version(run: Run, round: int) -> tuple[Hashable, ...]:
    """What tells a round from that of another run under the same name; it stays while the run grows."""
    link = read_small_arrays(files.round_path(run.folder, run.require_round(round))).link
    return run.folder.resolve(), run.identity, link

"""The explorer in a notebook cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.runs.run import Run

if TYPE_CHECKING:
    from figures.explore.notebook_cell import Explorer
    from figures.explore.work.jobs import Jobs


def explorer(runs: Sequence[Run | str | Path] | Run | str | Path, **selection: Any) -> Explorer:
    """The stage of `fedscape explore` in a notebook cell: landscapes, drift and reasons, live.

    Standing last in a cell it shows itself. `explorer.show(round=3, view="relief")` changes what it shows, and
    `explorer.selection` is what the reader selected. A saved notebook shows the last picture.

    Args:
        runs: A run, or several; or folders of runs, and then those that appear in them later are shown too.
        **selection: What is selected at first, as `Explorer.show` takes it.

    Raises:
        LookupError: If no run is given, one has no complete round, or the extra `explore` is not installed.
        ValueError: If an argument is not a run, or there is no such field of the selection or it does not accept the
            value.
    """
    inputs = list(runs) if isinstance(runs, Iterable) and not isinstance(runs, str) else [runs]
    if not inputs:
        raise LookupError("no run to explore; give one that was trained: drift.open(folder), or what simulate returns.")
    for run in inputs:
        if not isinstance(run, Run | str | Path):
            raise ValueError(f"runs are {runs!r}; give a run, its folder, a folder of runs, or several of them.")
        if isinstance(run, Run):
            run.require_round(-1)
    try:
        from figures.explore.notebook_cell import Explorer
    except ModuleNotFoundError as reason:
        raise LookupError(f"the explorer needs {reason.name}; pip install 'fedscape[explore]'.") from reason
    from figures.explore.work.workspace import Workspace

    return Explorer(Workspace(inputs, jobs=_jobs())).show(**selection)


@cache
def _jobs() -> Jobs:
    """The worker processes of all explorers of this kernel."""
    from figures.explore.work.jobs import Jobs

    return Jobs()

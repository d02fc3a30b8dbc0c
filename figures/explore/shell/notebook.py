"""The explorer in a notebook cell."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.runs.run import Run

if TYPE_CHECKING:
    from figures.explore.shell.app import Explorer
    from figures.explore.work.jobs import Jobs


def explorer(
    runs: Sequence[Run | str | Path] | Run | str | Path, *, points: int | None = None, **selection: Any
) -> Explorer:
    """The views of `fedscape explore` in a notebook cell: linked views of runs, live.

    Standing last in a cell it shows itself; `explorer.show(round=3, view="plane")` changes what it shows. The pickers
    need a running kernel.

    Args:
        runs: A run, or several; folders of runs do as well, and those that appear in them later are shown too.
        points: Grid points per axis of the plane; by default as many as the plane view refines to.
        **selection: What is selected at first, as `Explorer.show` takes it.

    Raises:
        LookupError: If no run is given, one has no complete round, or the extra `explore` is not installed.
        ValueError: If there is no such field of the selection, or it does not accept the value.
    """
    require_panel()
    import panel as pn

    from figures.explore.shell import style
    from figures.explore.shell.app import Explorer
    from figures.explore.work.workspace import Workspace

    inputs = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    if not inputs:
        raise LookupError("no run to explore; give one that was trained: drift.open(folder), or what simulate returns.")
    for run in inputs:
        if isinstance(run, Run):
            run.require_round(-1)
    pn.extension("tabulator", inline=True)
    style.work_offline()
    shown = Explorer(Workspace(inputs, jobs=_jobs()))
    if all(isinstance(run, Run) for run in inputs):
        shown.show(runs=shown.runs.names)
    if points is not None:
        shown.show(**{"plane.points": points})
    return shown.show(**selection)


def require_panel() -> None:
    """See that Panel is there.

    Raises:
        LookupError: If it is not, naming the extra.
    """
    try:
        importlib.import_module("panel")
    except ModuleNotFoundError as reason:
        raise LookupError("the explorer needs panel; pip install 'fedscape[explore]'.") from reason


@cache
def _jobs() -> Jobs:
    """The worker processes of all explorers of this kernel."""
    from figures.explore.work.jobs import Jobs

    return Jobs()

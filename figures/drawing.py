"""Named figures from runs to files: picture as PDF, PNG and SVG, numbers as zarr beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from drift.processes import processes
from drift.run import Run
from figures import gallery
from landscape import plugins, results

Job = tuple[Sequence[Run], Mapping[str, Any]]
"""Runs and options of a figure."""

Outcome = list[Path] | str
"""Files written, or the reason why these runs do not allow the figure."""


def draw_one(name: str, runs: Sequence[Run], folder: Path, **options: Any) -> list[Path]:
    """Files of one figure: pictures, then the folder of its numbers.

    Raises:
        ValueError, LookupError: If there is no such figure, or the runs do not allow it.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    from figures import style

    chosen, plain = gallery.load(name), name.replace("_", "-")
    plugins.require_options(f"figure {plain}", chosen.data, options)
    ds = chosen.data(list(runs), **options)
    numbers = folder / f"{plain}.zarr"
    results.save(ds, numbers)
    figure = chosen.draw(ds)
    paths = style.save(figure, folder / plain)
    plt.close(figure)
    return [*paths, numbers]


def draw_all(
    jobs: Mapping[str, Job],
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[float, str], None] | None = None,
) -> dict[str, Outcome]:
    """Several figures; one that its runs do not allow has the reason in place of its files.

    Args:
        jobs: Runs and options by figure name.
        folder: Where the files go.
        workers: Processes; each draws one figure after the other on one thread.
        progress: Called with (figures done, name of the last one).
    """
    found: dict[str, Outcome] = {}
    step = progress or (lambda done, note: None)
    if workers <= 1:
        for name, (runs, options) in jobs.items():
            step(len(found), name)
            found[name] = attempt(name, [run.folder for run in runs], _data(runs), folder, dict(options))
        step(len(found), "")
        return found
    with processes(workers) as pool:
        pending = {
            pool.submit(attempt, name, [run.folder for run in runs], _data(runs), folder, dict(options)): name
            for name, (runs, options) in jobs.items()
        }
        for job in as_completed(pending):
            found[pending[job]] = job.result()
            step(len(found), pending[job])
    return {name: found[name] for name in jobs}


def attempt(name: str, folders: list[Path], data: Path | None, folder: Path, options: dict[str, Any]) -> Outcome:
    """Outcome of one figure, from folders of runs and of datasets; fit to be sent to another process."""
    try:
        return draw_one(name, [Run(one, data) for one in folders], folder, **options)
    except (ValueError, LookupError) as reason:
        if isinstance(reason, KeyError | IndexError):
            raise
        return " ".join(str(reason).split())


def _data(runs: Sequence[Run]) -> Path | None:
    return runs[0].data if runs else None

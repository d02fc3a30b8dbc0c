"""Named figures from runs to files: picture as PDF, PNG and SVG, numbers as zarr and CSV beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from drift.atomic import write_bytes
from drift.opening import open as open_run
from drift.processes import processes
from drift.run import Run
from figures import gallery
from landscape import plugins, results
from landscape.export import exported

Job = tuple[Sequence[Run], Mapping[str, Any]]
"""Runs and options of a figure."""

Outcome = list[Path] | str
"""Files written, or the reason why these runs do not allow the figure."""


def draw_one(name: str, runs: Sequence[Run], folder: Path, *, stem: str = "", **options: Any) -> list[Path]:
    """Files of one figure: pictures, then its numbers as a zarr folder and as a table, a row a value.

    Args:
        stem: What the files are called; else the figure's name.
        options: Of the figure's data().

    Raises:
        ValueError, LookupError: If there is no such figure, or the runs do not allow it.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    from figures import style

    chosen, plain = gallery.load(name), name.replace("_", "-")
    plugins.require_options(f"figure {plain}", chosen.data, options)
    ds = chosen.data(list(runs), **options)
    called = stem or plain
    numbers, table = folder / f"{called}.zarr", folder / f"{called}.csv"
    results.save(ds, numbers)
    write_bytes(table, exported(ds, "csv"))
    figure = chosen.draw(ds)
    paths = style.save(figure, folder / called)
    plt.close(figure)
    return [*paths, numbers, table]


def draw_all(
    jobs: Mapping[str, Job],
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[float, str], None] | None = None,
    task: str | None = None,
) -> dict[str, Outcome]:
    """Several figures; one that its runs do not allow has the reason in place of its files.

    Args:
        jobs: Runs and options by figure name.
        folder: Where the files go.
        workers: Processes; each draws one figure after the other on one thread.
        progress: Called with (figures done, name of the last one).
        task: A task in place of the recorded one, FILE.py:FUNCTION, for workers; the runs given here have it already.
    """
    found: dict[str, Outcome] = {}
    step = progress or (lambda done, note: None)
    if workers <= 1:
        for name, (runs, options) in jobs.items():
            step(len(found), name)
            found[name] = _outcome(name, [replace(run) for run in runs], folder, dict(options))  # what it held is freed
        step(len(found), "")
        return found
    with processes(workers) as pool:
        pending = {
            pool.submit(attempt, name, [run.folder for run in runs], _data(runs), folder, dict(options), task): name
            for name, (runs, options) in jobs.items()
        }
        for job in as_completed(pending):
            found[pending[job]] = job.result()
            step(len(found), pending[job])
    return {name: found[name] for name in jobs}


def attempt(
    name: str,
    folders: list[Path],
    data: Path | None,
    folder: Path,
    options: dict[str, Any],
    task: str | None = None,
) -> Outcome:
    """Outcome of one figure, from folders of runs and of datasets; fit to be sent to another process."""
    return _outcome(name, [open_run(one, data=data, task=task) for one in folders], folder, options)


def _outcome(name: str, runs: Sequence[Run], folder: Path, options: dict[str, Any]) -> Outcome:
    try:
        return draw_one(name, runs, folder, **options)
    except (ValueError, LookupError) as reason:
        if isinstance(reason, KeyError | IndexError):
            raise
        return " ".join(str(reason).split())


def _data(runs: Sequence[Run]) -> Path | None:
    return runs[0].data if runs else None

"""Draw many named figures in several processes, with the reasons for those that their runs do not allow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from drift.parallel.worker_pool import Workers
from drift.runs.run import Run
from figures import gallery
from figures.pictures.draw_files import draw
from figures.selection.open_runs import open_run
from landscape.results import netcdf_files

draw_one = draw
"""Files of one figure."""

Job = tuple[Sequence[Run], Mapping[str, Any]]
"""Runs and options of a figure."""

Outcome = list[Path] | str
"""Files written, or the reason why these runs do not allow the figure."""


def draw_all(
    jobs: Mapping[str, Job],
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[float, str], None] | None = None,
    task: str | None = None,
) -> dict[str, Outcome]:
    """Draw several figures; the outcome of one that its runs do not allow is the reason, in place of its files.

    Each figure may select among its runs; `left_out` names those that it did not draw.

    Args:
        jobs: Runs and options by figure name.
        folder: Where the files go.
        workers: Processes; each draws one figure after the other on one thread.
        progress: Called with (figures done, name of the last one).
        task: A task in place of the recorded one, FILE.py:FUNCTION, for workers; the runs given here have it already.
    """
    outcomes: dict[str, Outcome] = {}
    step = progress or (lambda done, note: None)
    if workers <= 1:
        for name, (runs, options) in jobs.items():
            step(len(outcomes), name)
            fresh = [replace(run) for run in runs]  # its cached data are freed
            outcomes[name] = outcome_of(name, fresh, folder, options)
        step(len(outcomes), "")
        return outcomes
    data = next((run.context.data for runs, _ in jobs.values() for run in runs), None)
    names = list(jobs)
    requests = [
        (name, [run.folder for run in runs], data, folder, dict(options), task)
        for name, (runs, options) in jobs.items()
    ]
    with Workers(workers) as pool:
        for index, outcome in pool.as_completed(attempt, requests):
            outcomes[names[index]] = outcome
            step(len(outcomes), names[index])
    return {name: outcomes[name] for name in jobs}


Request = tuple[str, list[Path], Path | None, Path, dict[str, Any], str | None]
"""A figure to draw in another process: name, folders of its runs, of datasets and of its files, options, task."""


def attempt(state: None, request: Request) -> Outcome:
    """Outcome of one figure; a job of `drift.parallel.worker_pool.Workers`."""
    name, folders, data, folder, options, task = request
    return outcome_of(name, [open_run(path, data=data, task=task) for path in folders], folder, options)


def left_out(files: Sequence[Path]) -> list[str]:
    """Lines that name the runs which a drawn figure left out, read from the numbers beside its picture."""
    lines = (str(netcdf_files.load(path).attrs.get("left_out", "")) for path in files if path.suffix == ".nc")
    return [line for text in lines for line in text.splitlines()]


def outcome_of(name: str, runs: Sequence[Run], folder: Path, options: Mapping[str, Any], stem: str = "") -> Outcome:
    """Files of one figure of some of these runs, or the reason why they do not allow it."""
    try:
        return draw_one(name, gallery.AnyOf(runs), folder, stem=stem, **options)
    except (ValueError, LookupError) as reason:
        if isinstance(reason, KeyError | IndexError):
            raise
        return " ".join(str(reason).split())

"""Runs by the texts that name them on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from figures.texts import console

if TYPE_CHECKING:
    from drift.runs.run import Run


def opened(text: str, runs: Path, data: Path | None, task: str | None = None) -> Run:
    """The run with this path, name or beginning of a name."""
    from drift.runs.run_names import find

    folder = find(runs, text)
    from drift.runs.run import open as open_run

    return open_run(folder, data=data, task=task)


def opened_all(texts: Sequence[str], runs: Path, data: Path | None, task: str | None = None) -> list[Run]:
    """Runs by path, name or beginning of a name; a folder of runs stands for all of them that can be read.

    Raises:
        LookupError: If there is none, or one that is named itself cannot be read.
    """
    from drift.runs.run_names import find

    inside = {text: sorted(path.parent for path in Path(text).glob("*/run.json")) for text in texts}
    folders = {text: find(runs, text) for text in texts if not inside[text]}
    from drift.runs.run import open as open_run

    by_folder: dict[str, Run] = {}
    for text in texts:
        inner = inside[text]
        opened_here = readable(inner, data, task) if inner else [open_run(folders[text], data=data, task=task)]
        by_folder |= {str(run.folder.resolve()): run for run in opened_here}
    return list(by_folder.values())


def selection(texts: Sequence[str], runs: Path, data: Path | None, task: str | None = None) -> Sequence[Run]:
    """Runs as in `opened_all`; with a folder of runs among the texts, `AnyOf` them, of which those named are required.

    Raises:
        LookupError: If there is none.
    """
    folders = [text for text in texts if any(Path(text).glob("*/run.json"))]
    opened_runs = opened_all(texts, runs, data, task)
    if not folders:
        return opened_runs
    from figures.gallery import AnyOf

    named_runs = opened_all([text for text in texts if text not in folders], runs, data, task)
    places = {run.folder.resolve() for run in named_runs}
    return AnyOf(opened_runs, [run for run in opened_runs if run.folder.resolve() in places])


def readable(folders: Sequence[Path], data: Path | None, task: str | None = None) -> list[Run]:
    """The runs of a folder of runs; each one that cannot be read is named, with the reason, and left out.

    Raises:
        LookupError: If none can be read.
    """
    from drift.runs.run import open as open_run

    readable_runs = []
    for folder in folders:
        try:
            run = open_run(folder, data=data, task=task)
            _ = run.experiment, run.rounds()
        except (LookupError, ValueError, OSError) as reason:
            console.say(f"{folder.name}: left out, it cannot be read: {' '.join(str(reason).split())}")
        else:
            readable_runs.append(run)
    if not readable_runs:
        raise LookupError(f"no run in {folders[0].parent} can be read.")
    return readable_runs

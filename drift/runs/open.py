"""Opening a recorded run, with a task of one's own where it needs one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from drift.plugins.trust import allow
from drift.runs.context import Context
from drift.runs.corrected import corrected_since, from_outside
from drift.runs.own_task import Given, Parts
from drift.runs.run import Run
from landscape.model.task import Task


def open(
    folder: str | Path,
    *,
    data: str | Path | None = None,
    task: Task | str | None = None,
    parts: Parts | None = None,
    trust: str | None = None,
) -> Run:
    """The recorded run in a folder.

    Args:
        folder: Where it lies.
        data: Folder of the datasets.
        task: Your own in place of the recorded one, or the text `my_code.py:make_task` of a function that returns it.
        parts: Sample numbers (into the task's train split) of each client, where that is known: a list by number, or
            a mapping by number or name.
        trust: The function, MODULE:FUNCTION, that may be imported to make the model of this and of other runs.

    Raises:
        LookupError: If the folder holds no run, or its description is damaged.
        ValueError: If the task is none.
    """
    if trust is not None:
        allow(trust)
    run = Run(Path(folder), Context(Path(data) if data is not None else None))
    names = run.about.get("names")  # read and checked here, where the folder was given
    if not from_outside(run.about) and (since := corrected_since(run.about, run.method)):
        warnings.warn(
            f"{run.name} was trained before {run.method.name()} was corrected ({'; '.join(since)}); its numbers are "
            "those of the earlier version.",
            stacklevel=2,
        )
    return run if task is None else Run(run.folder, replace(run.context, user_task=Given.of(task, parts, names)))

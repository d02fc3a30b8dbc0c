"""A folder of checkpoints as a run without its data; the task can be supplied now or when the run is opened."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from drift.importers import models
from drift.importers.models import Model
from drift.importers.path_patterns import Patterns
from drift.record.recorder import Recorder
from drift.runs.context import Context
from drift.runs.run import Run
from drift.runs.user_task import UserTask, split_task
from landscape.model.checkpoint import read_tensors
from landscape.model.task import Task
from landscape.model.unnamed_tensors import are_unnamed
from landscape.results.progress import Progress


def record_checkpoints(
    folder: str | Path,
    patterns: Patterns | None = None,
    *,
    task: Task | str | None = None,
    runs: str | Path = "runs",
    progress: Progress | None = None,
    told: Mapping[str, Any] | None = None,
) -> Run:
    """A run made from state dicts alone, like one recorded by `drift.record.recorder`.

    Drift analyses need no more. Landscapes need a task: `drift.open(folder, task=...)`, or `--task`.

    Args:
        folder: Folder of the checkpoints, with `sizes.json` as for `import_checkpoints`; without it clients have the
            sizes of the task's parts, where it has parts.
        patterns: Patterns of the paths of models.
        task: The task whose test split evaluates the global models and whose model names the parameters; None: no
            metrics, and parameters as in `drift.record.flat_arrays.FlatArrays.of`.
        runs: Folder of runs.
        progress: Called with the finished and the total number of rounds: once for digests, once for models.
        told: Description of the training: name, method, data, partition, seed, settings, as for
            `drift.record.recorder.Recorder`.

    Raises:
        LookupError: If the folder holds no round with a known start.
        ValueError: If a file is no checkpoint, damaged, or of another architecture; the message names it.
    """
    folder = Path(folder)
    files = models.usable_checkpoints(folder, patterns)
    sizes = models.read_sizes(folder, files)
    content, parts = split_task(task)
    user_task = None if content is None else UserTask.load(content)
    has_parts = user_task is not None and parts is not None
    if user_task is not None and has_parts:
        numbers = files.numbers()
        names = [str(name) for name in numbers] if any(name != number for name, number in numbers.items()) else None
        numbers_of = UserTask.load(user_task.task, parts, names).parts or ()
        sizes = models.part_sizes(numbers, list(map(len, numbers_of)), sizes)
    settings = f"{patterns} {'' if user_task is None else user_task.fingerprint}"
    settings += f" {sizes}" if has_parts else ""
    description = dict(told or {})
    settings += json.dumps(description, sort_keys=True) if description else ""
    path = Path(runs) / models.run_name(folder, files, settings, progress, description.get("name"))
    recorder = Recorder(path, None if user_task is None else user_task.task.model, continuous=False, **description)
    known = None if user_task is None else user_task.task
    read = _read if known is None else partial(models.read_model, task=known)
    for read_round in models.read_rounds(files, read, sizes, progress, first=recorder.next - 1):
        if read_round.start is None or read_round.index < recorder.next:
            continue  # where its clients began is not known, or it was recorded before a stop
        counts = {name: (_state(known, model), sizes.get(name, 1)) for name, model in read_round.clients.items()}
        start, end = _state(known, read_round.start), _state(known, read_round.end)
        metrics = {} if known is None else models.evaluate_model(known, read_round.end)
        recorder.round(start=start, clients=counts, end=end, metrics=metrics, index=read_round.index)
    run = Run(path)
    if user_task is None:
        return run
    return Run(path, Context(user_task=UserTask.load(user_task.task, parts, run.about.get("names"))))


def _read(path: Path) -> Model:
    state = read_tensors(path)
    if are_unnamed(state):
        raise ValueError(f"{path} holds numbers without names; name their model by --task FILE.py:FUNCTION.")
    return state


def _state(task: Task | None, model: Model) -> Model:
    """Tensors of a model by the names of the task's model."""
    if task is None:
        return model
    constant = {name: value for name, value in task.model.state_dict().items() if not value.is_floating_point()}
    frozen = {name: value for name, value in task.model.named_parameters() if not value.requires_grad}
    named = task.layout.named(model["theta"]), task.layout.named_buffers(model["buffers"])
    return {**constant, **frozen, **named[0], **named[1]}

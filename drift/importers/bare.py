"""A folder of checkpoints as a run without its data; the task can be supplied now or when the run is opened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drift.importers.checkpoint_files import Patterns, RoundFiles
from drift.importers.models import (
    evaluate_model,
    part_sizes,
    read_model,
    read_round,
    read_sizes,
    run_name,
    usable_checkpoints,
)
from drift.record.recorder import Recorder
from drift.runs.context import Context
from drift.runs.run import Run
from drift.runs.user_task import UserTask, split_task
from landscape.model.checkpoint import read_tensors
from landscape.model.task import Task
from landscape.model.unnamed_tensors import are_unnamed
from landscape.results.progress import Progress, with_progress

State = dict[str, Tensor]
"""Tensors by name."""


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
    files = usable_checkpoints(folder, patterns)
    sizes = read_sizes(folder, files)
    content, parts = split_task(task)
    user_task = None if content is None else UserTask.load(content)
    of_parts = user_task is not None and parts is not None
    if user_task is not None and of_parts:
        numbers = files.numbers()
        names = [str(name) for name in numbers] if any(name != number for name, number in numbers.items()) else None
        own = UserTask.load(user_task.task, parts, names).parts or ()
        sizes = part_sizes(numbers, list(map(len, own)), sizes)
    settings = f"{patterns} {'' if user_task is None else user_task.fingerprint}"
    settings += f" {sizes}" if of_parts else ""
    description = dict(told or {})
    settings += json.dumps(description, sort_keys=True) if description else ""
    path = Path(runs) / run_name(folder, files, settings, progress, description.get("name"))
    recorder = Recorder(path, None if user_task is None else user_task.task.model, continuous=False, **description)
    before: tuple[int, State] | None = None
    for index, paths in with_progress(list(files.usable().items()), progress):
        if index < recorder.next - 1:
            continue  # recorded before a stop
        end, clients, metrics = _models(paths, sizes, None if user_task is None else user_task.task)
        follows = before is not None and before[0] == index - 1
        start = _start(paths.start, user_task) if paths.start is not None else before[1] if before and follows else None
        if start is not None and index >= recorder.next:
            counts = {name: (state, sizes.get(name, 1)) for name, state in clients.items()}
            recorder.round(start=start, clients=counts, end=end, metrics=metrics, index=index)
        before = index, end
    run = Run(path)
    if user_task is None:
        return run
    return Run(path, Context(user_task=UserTask.load(user_task.task, parts, run.about.get("names"))))


def _models(
    paths: RoundFiles, sizes: dict[int | str, int], task: Task | None
) -> tuple[State, dict[int | str, State], dict[str, float]]:
    if task is not None:
        end, clients = read_round(paths, task, sizes)
        models = {name: _state_of(task, model) for name, model in clients.items()}
        return _state_of(task, end), models, evaluate_model(task, end)
    states = {name: _state(path) for name, path in paths.clients.items()}
    return _state(paths.end) if paths.end is not None else _mean(states, sizes), states, {}


def _start(path: Path, user_task: UserTask | None) -> State:
    return _state(path) if user_task is None else _state_of(user_task.task, read_model(path, user_task.task))


def _state(path: Path) -> State:
    state = read_tensors(path)
    if are_unnamed(state):
        raise ValueError(f"{path} holds numbers without names; name their model by --task FILE.py:FUNCTION.")
    return state


def _state_of(task: Task, model: tuple[Tensor, Tensor]) -> State:
    theta, buffers = model
    constant = {name: value for name, value in task.model.state_dict().items() if not value.is_floating_point()}
    frozen = {name: value for name, value in task.model.named_parameters() if not value.requires_grad}
    return {**constant, **frozen, **task.layout.named(theta), **task.layout.named_buffers(buffers)}


def _mean(states: dict[int | str, State], sizes: dict[int | str, int]) -> State:
    """Mean of floating tensors by size, with the first client's other tensors; ValueError if a client's differ."""
    first = next(iter(states.values()))
    shapes = {key: value.shape for key, value in first.items()}
    for name, state in states.items():
        if {key: value.shape for key, value in state.items()} != shapes:
            raise ValueError(f"client {name} has other tensors than the first client; all need one architecture.")
    counts = torch.tensor([sizes.get(name, 1) for name in states], dtype=torch.float64)
    weights = counts / counts.sum()
    mean = dict(first)
    for key, value in first.items():
        if value.is_floating_point():
            stacked = torch.stack([state[key].double() for state in states.values()])
            mean[key] = torch.tensordot(weights, stacked, dims=1).to(value.dtype)
    return mean

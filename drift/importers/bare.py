"""A folder of checkpoints as a run without its data: its task is given now, or whenever the run is opened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drift.importers.found import Files
from drift.importers.models import checkpoints, measured, read_model, read_round, read_sizes, run_name
from drift.importers.patterns import Patterns
from drift.importers.unnamed import without_names
from drift.record.recorder import Recorder
from drift.runs.context import Context
from drift.runs.own_task import Given, apart
from drift.runs.run import Run
from drift.store.foreign_tensors import read_tensors
from landscape.model.task import Task
from landscape.results.progress import Progress, with_progress

State = dict[str, Tensor]


def record_checkpoints(
    folder: str | Path,
    patterns: Patterns | None = None,
    *,
    task: Task | str | None = None,
    runs: str | Path = "runs",
    progress: Progress | None = None,
    told: Mapping[str, Any] | None = None,
) -> Run:
    """A run on disk made from state dicts alone, as `drift.record.recorder` would have recorded them.

    Drift analyses need no more. Landscapes need a task: `drift.open(folder, task=...)`, or `--task`.

    Args:
        folder: Where the checkpoints lie, with `sizes.json` as `import_checkpoints` takes it.
        patterns: Which file is which model.
        task: Measures the global models on its test split, and says which tensors are parameters; None: no metrics,
            and parameters are what `drift.record.flat_arrays.FlatArrays.of` takes for them.
        runs: Folder of runs.
        progress: Called with the rounds that are read and all rounds: once for their digests, once for the models.
        told: What is known of the training: name, method, data, partition, seed, settings, as
        `drift.record.recorder.Recorder`
            takes them.

    Raises:
        LookupError: If the folder holds no round with a known start.
        ValueError: If a checkpoint is none, is damaged, or is of another architecture; the file is named.
    """
    folder = Path(folder)
    files = checkpoints(folder, patterns)
    sizes = read_sizes(folder, files)
    made, parts = apart(task)
    given = None if made is None else Given.of(made)
    settings = f"{patterns} {'' if given is None else given.fingerprint}"
    told = dict(told or {})
    settings += json.dumps(told, sort_keys=True) if told else ""
    path = Path(runs) / run_name(folder, files, settings, progress, told.get("name"))
    recorder = Recorder(path, None if given is None else given.task.model, continuous=False, **told)
    before: tuple[int, State] | None = None
    for index, one in with_progress(list(files.usable().items()), progress):
        if index < recorder.next - 1:
            continue  # recorded before a stop
        end, clients, metrics = _models(one, sizes, None if given is None else given.task)
        follows = before is not None and before[0] == index - 1
        start = _start(one, given) if one.start is not None else before[1] if before and follows else None
        if start is not None and index >= recorder.next:
            counts = {name: (state, sizes.get(name, 1)) for name, state in clients.items()}
            recorder.round(start=start, clients=counts, end=end, metrics=metrics, index=index)
        before = index, end
    run = Run(path)
    return run if given is None else Run(path, Context(user_task=Given.of(given.task, parts, run.about.get("names"))))


def _models(
    one: Files, sizes: dict[int | str, int], task: Task | None
) -> tuple[State, dict[int | str, State], dict[str, float]]:
    """Global model, client models and test metrics of a round."""
    if task is not None:
        end, clients = read_round(one, task, sizes)
        models = {name: _named(task, model) for name, model in clients.items()}
        return _named(task, end), models, measured(task, end)
    states = {name: _state(path) for name, path in one.clients.items()}
    return _state(one.end) if one.end is not None else _mean(states, sizes), states, {}


def _start(one: Files, given: Given | None) -> State:
    if one.start is None:
        raise LookupError("the round has no start")
    return _state(one.start) if given is None else _named(given.task, read_model(one.start, given.task))


def _state(path: Path) -> State:
    state = read_tensors(path)
    if without_names(state):
        raise ValueError(f"{path} holds numbers without names; say by --task FILE.py:FUNCTION which model's they are.")
    return state


def _named(task: Task, model: tuple[Tensor, Tensor]) -> State:
    theta, buffers = model
    constant = {name: value for name, value in task.model.state_dict().items() if not value.is_floating_point()}
    frozen = {name: value for name, value in task.model.named_parameters() if not value.requires_grad}
    return {**constant, **frozen, **task.layout.named(theta), **task.layout.named_buffers(buffers)}


def _mean(states: dict[int | str, State], sizes: dict[int | str, int]) -> State:
    """Mean of floating tensors by size; other tensors are those of the first client.

    Raises:
        ValueError: If a client's tensors differ in name or shape from the first one's.
    """
    first = next(iter(states.values()))
    shapes = {key: value.shape for key, value in first.items()}
    for name, state in states.items():
        if {key: value.shape for key, value in state.items()} != shapes:
            raise ValueError(f"client {name} has other tensors than the first client; were they trained alike?")
    counts = torch.tensor([sizes.get(name, 1) for name in states], dtype=torch.float64)
    weights = counts / counts.sum()
    found = dict(first)
    for key, value in first.items():
        if value.is_floating_point():
            stacked = torch.stack([state[key].double() for state in states.values()])
            found[key] = torch.tensordot(weights, stacked, dims=1).to(value.dtype)
    return found

"""A folder of checkpoints of another program as a run with a dataset of fedscape."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drift.config.experiment import Experiment
from drift.config.load import read
from drift.importers import models
from drift.importers.checkpoint_files import CheckpointFiles
from drift.importers.models import Model, ReadRound
from drift.importers.path_patterns import Patterns
from drift.plugins import trust
from drift.record.run_description import DESCRIBED, describe_training
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.description import versions
from drift.simulation.disk_space import require_space
from drift.store import files as store
from drift.store import links, locks
from drift.store.round_record import Round, gram
from drift.training.data import build_task, read_data
from drift.training.server import Server
from landscape.model.task import Task
from landscape.results.progress import Progress


def import_checkpoints(
    folder: str | Path,
    *overrides: str,
    model: str,
    dataset: str,
    patterns: Patterns | None = None,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    progress: Progress | None = None,
    told: Mapping[str, Any] | None = None,
) -> Run:
    """A run made from state dicts, with models, Gram matrices and test metrics as in a run trained here.

    The folder holds `round_003/global.pt` (the global model after round 3), `round_003/client_7.pt` and, where
    it differs from the global model before, `round_003/start.pt`, with any ending of checkpoints; or whatever
    `patterns` say. `sizes.json` in the folder has the samples of each client, like {"7": 120}; without it they are
    those of the partition in `overrides`, and without one all weigh the same. The first round needs a start, else it
    only serves as the start of the next. No code in a file is run. Without global models, means of the clients by
    their sizes replace them.

    Args:
        folder: Folder of the checkpoints.
        overrides: Settings of the training, like "clients.partition=dirichlet" or "local.lr=0.1".
        model: Architecture: a plug-in or module:function.
        dataset: Data of which loss and error are computed.
        patterns: Patterns of the paths of models.
        runs, data: Folders of runs and of datasets.
        progress: Called with the finished and the total number of rounds: once for digests, once for models.
        told: Name of the run, and of a method of another program, by "name" and "method".

    Raises:
        LookupError: If the folder holds no round with a known start.
        ValueError: If a file is no checkpoint, damaged, or of another architecture; the message names it.
    """
    folder = Path(folder)
    files = models.usable_checkpoints(folder, patterns)
    sizes = models.read_sizes(folder, files)
    trust.allow_setting("task.model", model)
    trust.allow_setting("task.dataset", dataset)
    experiment = _experiment(files, model, dataset, overrides)
    description = describe_training(**{**dict.fromkeys(DESCRIBED), **(told or {})})
    keys = {text.partition("=")[0].strip() for text in overrides}
    stated = json.dumps(description, sort_keys=True) if description else ""
    settings = experiment.hash + (str(patterns) if patterns else "") + stated
    path = Path(runs) / models.run_name(folder, files, settings, progress, description.get("name"))
    run = Run(path, Context(None if data is None else Path(data)))
    if (path / "run.json").exists() and run.committed:
        return run
    content = read_data(experiment, run.context.data)
    task = build_task(experiment, content)
    partitioned = any("partition" in text for text in overrides)
    if partitioned:
        sizes = models.part_sizes(files.numbers(), content.sizes().tolist(), sizes)
    require_space(path, experiment, task.layout.size + task.layout.buffer_size)
    with locks.locked(path), locks.remove_on_failure(path):
        unknown = [] if "method" in description or keys & {"method", "method.name"} else ["method"]
        unknown += [] if any(key.startswith("local.") for key in keys) else ["local settings"]
        unknown += [] if "seed" in keys else ["seed"]
        unknown += ["aggregation weights"]
        unknown += [] if sizes else ["client sizes (recorded as 1 each)"]
        unknown += ["global models (taken as means of the clients by size)"] if files.averaged else []
        unknown += [] if partitioned else ["partition"]
        description |= {"seed": experiment.seed} if "seed" in keys else {}
        name = links.name_by(path.name, versions())
        about = {
            "experiment": experiment.resolved(),
            "hash": experiment.hash,
            "fingerprint": content.fingerprint,
            "classes": list(content.classes),
            "layout": [[name, list(shape)] for name, shape in task.layout.parameters],
            "engine": "imported",
            "imported": True,
            "run": name,
            "unknown": unknown,
            "versions": versions(),
            **({"told": description} if description else {}),
        }
        numbers = files.numbers()
        if any(name != number for name, number in numbers.items()):
            about["names"] = [str(name) for name in numbers]
        _write(path, name, task, experiment, files, sizes, progress)
        store.write_json(path / "run.json", about)
    return run


def _write(
    path: Path,
    run: str,
    task: Task,
    experiment: Experiment,
    files: CheckpointFiles,
    sizes: dict[int | str, int],
    progress: Progress | None,
) -> None:
    """Write all rounds with a known start, then the commit point."""
    end, previous, link = {"theta": task.theta, "buffers": task.buffers}, torch.zeros(task.layout.size), ""
    for read_round in models.read_rounds(files, partial(models.read_model, task=task), sizes, progress):
        end = read_round.end
        if read_round.start is None:
            continue
        record = _record(read_round, read_round.start, previous, task, sizes, files.numbers())
        store.write_round(path, record, experiment.keep, experiment.rounds, links.origin(run, link))
        link = store.link(record)
        if len(record.ids):
            previous = record.mean_update(experiment.cohort_weights(record.sizes))
    server = Server(end["theta"], end["buffers"], previous, {}, {}, experiment.rounds)
    store.write_state(path, server.tensors(), server.next, links.origin(run, link))


def _record(
    read: ReadRound, start: Model, previous: Tensor, task: Task, sizes: Mapping[Any, int], numbers: Mapping[Any, int]
) -> Round:
    end, clients = read.end, read.clients
    widths = {"theta": task.layout.size, "buffers": task.layout.buffer_size}
    stacked = {
        name: torch.stack([model[name] for model in clients.values()]) if clients else torch.zeros(0, width)
        for name, width in widths.items()
    }
    counts = torch.tensor([sizes.get(name, 1) for name in clients], dtype=torch.int64)
    step, deltas = end["theta"] - start["theta"], stacked["theta"] - start["theta"]
    return Round(
        index=read.index,
        ids=torch.tensor([numbers[name] for name in clients], dtype=torch.int64),
        sizes=counts,
        weights=counts.double() / counts.sum() if len(counts) else torch.zeros(0, dtype=torch.float64),
        gram=gram(start["theta"], previous, step, deltas),
        metrics=models.evaluate_model(task, end),
        start=start["theta"],
        end=end["theta"],
        clients=stacked["theta"],
        start_buffers=start["buffers"],
        end_buffers=end["buffers"],
        client_buffers=stacked["buffers"],
    )


def _experiment(files: CheckpointFiles, model: str, dataset: str, overrides: tuple[str, ...]) -> Experiment:
    number = max(files.numbers().values(), default=0) + 1
    base = {
        "rounds": max(files.usable()) + 1,
        "task": {"dataset": dataset, "model": model},
        "clients": {
            "number": number,
            "per_round": max(1, *(len(paths.clients) for paths in files.rounds.values()), 0),
            "partition": {"name": "iid"},
        },
    }
    return read(Experiment.model_validate(base), *overrides)

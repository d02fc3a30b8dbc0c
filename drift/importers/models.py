"""What a folder of checkpoints contains and lacks: models, sizes and names."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from drift.importers.checkpoint_files import CheckpointFiles, find_checkpoints
from drift.importers.path_patterns import SHIPPED, Patterns
from drift.record.flat_arrays import FlatArrays, arrays_by_name
from drift.store.number_ranges import spans
from landscape.model.checkpoint import read_state, read_tensors, weight_files
from landscape.model.content_words import one_line
from landscape.model.guarded_load import require_inside, require_room
from landscape.model.task import Task
from landscape.model.unnamed_tensors import are_unnamed
from landscape.results.parsed_text import json_table
from landscape.results.progress import Progress, with_progress
from landscape.sweep.evaluate import model_metrics

Model = dict[str, Tensor]
"""A model of a checkpoint: `theta` (d,) and floating `buffers` (b,) of a task, else its tensors by their names."""


def usable_checkpoints(folder: str | Path, patterns: Patterns | None = None) -> CheckpointFiles:
    """Checkpoints of a folder with at least one round whose start is known.

    Raises:
        LookupError: If there are none.
    """
    files = find_checkpoints(folder, patterns or SHIPPED["fedscape"])
    if not files.started():
        raise LookupError(
            f"{folder} holds round {min(files.rounds)} only, or no two in a row, and the start of its clients is "
            "unknown; add start.pt next to its global model, or the round before."
        )
    return files


def read_model(path: Path, task: Task) -> Model:
    """theta and buffers of a checkpoint.

    Raises:
        ValueError: If the file is no checkpoint of the task's architecture; the message names it.
    """
    tensors, layout = read_state(path, task), task.layout
    model = {"theta": layout.theta(tensors).float(), "buffers": layout.buffer_vector(tensors).float()}
    if not all(bool(torch.isfinite(value).all()) for value in model.values()):
        raise ValueError(f"{path} holds values that are not finite; leave this client or round out.")
    return model


@dataclass(frozen=True)
class ReadRound:
    """A round of checkpoints: its number, the model that its clients received (None: not known), and its models."""

    index: int
    start: Model | None
    end: Model
    clients: dict[int | str, Model]


def read_rounds(
    files: CheckpointFiles,
    read: Callable[[Path], Model],
    sizes: Mapping[int | str, int],
    progress: Progress | None,
    *,
    first: int = 0,
) -> Iterator[ReadRound]:
    """Rounds from `first` on with a global model after them: that of a file, or the mean of the clients by size.

    Raises:
        ValueError: If a file is no checkpoint, or a client has another model than the first; the message names it.
    """
    before: ReadRound | None = None
    for index, paths in with_progress(list(files.usable().items()), progress):
        if index < first:
            continue
        clients = {name: read(path) for name, path in paths.clients.items()}
        end = _mean(clients, sizes) if paths.end is None else read(paths.end)
        start = before.end if before is not None and before.index == index - 1 else None
        before = ReadRound(index, start if paths.start is None else read(paths.start), end, clients)
        yield before


def _mean(models: Mapping[int | str, Model], sizes: Mapping[int | str, int]) -> Model:
    """Mean of floating tensors by size, with the first client's other tensors."""
    mean = dict(next(iter(models.values())))
    shapes = {key: value.shape for key, value in mean.items()}
    for name, model in models.items():
        if {key: value.shape for key, value in model.items()} != shapes:
            raise ValueError(f"client {name} has other tensors than the first client; all need one architecture.")
    counts = torch.tensor([sizes.get(name, 1) for name in models], dtype=torch.float64)
    for key, value in mean.items():
        if value.is_floating_point():
            stacked = torch.stack([model[key].double() for model in models.values()])
            mean[key] = torch.tensordot(counts / counts.sum(), stacked, dims=1).to(value.dtype)
    return mean


def read_sizes(folder: Path, files: CheckpointFiles) -> dict[int | str, int]:
    """Samples by client, from sizes.json in the folder; empty without this file.

    Raises:
        ValueError: If the file cannot be read or leaves a client out.
    """
    path = folder / "sizes.json"
    if not path.exists():
        return {}
    require_inside(path, folder)
    try:
        content = json_table(path.read_bytes()).items()
        sizes = {int(client) if client.isdecimal() else client: int(size) for client, size in content}
    except (ValueError, TypeError, AttributeError, OverflowError) as reason:
        raise ValueError(f'{path} cannot be read ({one_line(reason)}); expected is {{"0": 120, "1": 80}}.') from reason
    if absent := [client for client in files.numbers() if client not in sizes]:
        raise ValueError(f"{path} gives no size of client {absent[0]}; it has {list(sizes)[:20]}.")
    if low := [client for client, size in sizes.items() if size < 1]:
        raise ValueError(f"{path} gives client {low[0]} {sizes[low[0]]} samples; sizes are 1 or more.")
    return sizes


def part_sizes(
    numbers: Mapping[int | str, int], sizes: Sequence[int], stated: Mapping[int | str, int]
) -> dict[int | str, int]:
    """Samples by client, from the sizes of the clients' parts of the task by number.

    Args:
        numbers: Numbers of the clients by name.
        sizes: Of the parts.
        stated: Those of sizes.json, if there is one.

    Raises:
        ValueError: If a client has models and no samples, or another size in sizes.json.
    """
    if absent := [name for name, number in numbers.items() if number >= len(sizes) or sizes[number] < 1]:
        raise ValueError(f"client {absent[0]} has models, and by its part of the task no samples; correct the parts.")
    named = {name: sizes[number] for name, number in numbers.items()}
    if other := [name for name, size in named.items() if stated.get(name, size) != size]:
        raise ValueError(
            f"sizes.json gives client {other[0]} {stated[other[0]]} samples, its part of the task has "
            f"{named[other[0]]}; correct one of them."
        )
    return named


def run_name(
    folder: Path, files: CheckpointFiles, settings: str, progress: Progress | None, called: str | None = None
) -> str:
    """Name of the run, from `called` or its folder; it ends in eight digits of the SHA-256 of settings and files."""
    total = hashlib.sha256(settings.encode())
    for round_files in with_progress(list(files.rounds.values()), progress):
        for path in (file for folder in round_files.paths() for file in weight_files(folder)):
            require_room(path, path.stat().st_size)  # before it is digested: a sparse file may have any size
            total.update(path.relative_to(folder).as_posix().encode())
            with open(path, "rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    sizes = folder / "sizes.json"
    total.update(sizes.read_bytes() if sizes.exists() else b"")
    slug = re.sub(r"[^a-z0-9]+", "-", (called or folder.resolve().name).lower()).strip("-") or "run"
    return f"imported-{slug}-{total.hexdigest()[:8]}"


def evaluate_model(task: Task, end: Model) -> dict[str, float]:
    """Loss and metrics of a model on the test split."""
    metrics = model_metrics(task, end["theta"], end["buffers"])
    return {**metrics, "accuracy": 1 - metrics["error"]} if "error" in metrics else metrics


def preview_import(folder: str | Path, patterns: Patterns | None = None) -> dict[str, Any]:
    """Contents of a folder of checkpoints and what is missing, by name; only the first checkpoint is read.

    Raises:
        LookupError: If no file fits a pattern.
        ValueError: If a file leads out of the folder, or the first checkpoint cannot be read.
    """
    folder, patterns = Path(folder), patterns or SHIPPED["fedscape"]
    files = find_checkpoints(folder, patterns)
    cohorts = [len(paths.clients) for paths in files.rounds.values()]
    paths = [path for one_round in files.rounds.values() for path in one_round.paths()]
    first = read_tensors(paths[0])
    flat = FlatArrays.of(first)
    started = files.started()
    assumed = next((shipped.assumed for shipped in SHIPPED.values() if shipped == patterns), "")
    return {
        "patterns": str(patterns),
        **({"assumed": assumed} if assumed else {}),
        "files": len(paths),
        "bytes": sum(file.stat().st_size for path in paths for file in weight_files(path)),
        "rounds found": spans(list(files.rounds)),
        "rounds of the run": spans(started) if started else "none",
        "clients": len(files.numbers()),
        "clients a round": f"{min(cohorts)} to {max(cohorts)}" if min(cohorts) < max(cohorts) else str(min(cohorts)),
        "first file": paths[0].relative_to(folder).as_posix(),
        "parameters": flat.size,
        "tensors": [f"{name} {list(shape)}" for name, shape in (*flat.parameters, *flat.buffers)],
        "left out": [name for name in arrays_by_name(first) if name not in dict((*flat.parameters, *flat.buffers))],
        "missing": [
            *(["names of the tensors: give the model by --task or --model"] if are_unnamed(first) else []),
            *_missing(folder, files),
        ],
        "not used": [*files.others, *(f"{name}/ (a link; not followed)" for name in files.links)],
    }


def _missing(folder: Path, files: CheckpointFiles) -> list[str]:
    lines = []
    started, usable = set(files.started()), set(files.usable())
    if files.averaged:
        lines.append("global models: means of the clients by size replace them (--globals PATTERN names others)")
    lines += [f"global model of round {index}: the round is left out" for index in files.rounds if index not in usable]
    lines += [f"start of round {index}: it only serves as the start of round {index + 1}" for index in usable - started]
    if not any(paths.clients for paths in files.rounds.values()):
        lines.append("client models: client drift cannot be computed")
    if not read_sizes(folder, files):
        lines.append("sizes.json: all clients count the same, unless a task or partition gives their parts")
    return lines

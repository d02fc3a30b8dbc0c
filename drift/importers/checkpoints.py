"""A folder of checkpoints that another program wrote, as a run like any other."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from drift import store
from drift.experiment import Experiment
from drift.gram import gram
from drift.importers.tensors import SUFFIXES, one_line, read_tensors
from drift.read import read
from drift.rounds import Round
from drift.run import Run
from drift.server import Server
from drift.setting import build_task, read_data
from drift.simulate import versions
from drift.space import require_space
from landscape.affine import evaluate
from landscape.progress import Progress, counted
from landscape.task import Task

Model = tuple[Tensor, Tensor]
"""theta (d,) and floating buffers (b,)."""


@dataclass(frozen=True)
class Files:
    """Checkpoints of one round: global model after it, what clients received, client models by id."""

    end: Path
    start: Path | None
    clients: dict[int, Path]


def import_checkpoints(
    folder: str | Path,
    *overrides: str,
    model: str,
    dataset: str,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """A run on disk made from state dicts, its models, Gram matrices and test metrics as if it were trained here.

    The folder holds `round_003/global.pt` (the global model after round 3), `round_003/client_7.pt` and, where
    it differs from the global model before, `round_003/start.pt`; also .pth and .safetensors. `sizes.json` beside
    them gives the samples of each client, like {"7": 120}; without it all count the same. The first round needs
    a start, else it only serves as the start of the next. Nothing is unpickled but tensors.

    Args:
        folder: Where the checkpoints lie.
        overrides: What is known of the training, like "clients.partition=dirichlet" or "local.lr=0.1".
        model: Architecture: a plug-in or module:function.
        dataset: Data that loss and error are measured on.
        runs, data: Folders of runs and of datasets.
        progress: Called with the rounds that are read and all rounds: once for their digests, once for the models.

    Raises:
        LookupError: If the folder holds no round with a known start.
        ValueError: If a checkpoint is none, is damaged, or is of another architecture; the file is named.
    """
    folder = Path(folder)
    files = checkpoints(folder)
    sizes = _sizes(folder, files)
    experiment = _experiment(files, model, dataset, overrides)
    path = Path(runs) / f"imported-{_slug(folder.name)}-{_identity(folder, files, experiment, progress)}"
    run = Run(path, None if data is None else Path(data))
    if (path / "run.json").exists() and run.committed:
        return run
    content = read_data(experiment, run.data)
    task = build_task(experiment, content)
    require_space(path, experiment, task.layout.size + task.layout.buffer_size)
    with store.locked(path), store.whole(path):
        unknown = ["method and local settings (recorded as fedavg with defaults)", "aggregation weights"]
        unknown += [] if sizes else ["client sizes (recorded as 1 each)"]
        unknown += [] if any("partition" in text for text in overrides) else ["partition (recorded as iid)"]
        about = {
            "experiment": experiment.resolved(),
            "hash": experiment.hash,
            "fingerprint": content.fingerprint,
            "classes": list(content.classes),
            "layout": [[name, list(shape)] for name, shape in task.layout.parameters],
            "engine": "imported",
            "imported": True,
            "unknown": unknown,
            "versions": versions(),
        }
        _write(path, task, experiment, files, sizes, progress)
        store.write_json(path / "run.json", about)
    return run


def checkpoints(folder: str | Path) -> dict[int, Files]:
    """Checkpoint files by round, ascending.

    Raises:
        LookupError: If there are none.
    """
    found = {}
    for place in sorted(Path(folder).glob("round*")):
        number = re.fullmatch(r"rounds?[_-]?(\d+)", place.name)
        if number is None or not place.is_dir():
            continue
        named = {path.stem: path for path in sorted(place.iterdir()) if path.suffix in SUFFIXES}
        clients = {int(stem.split("_")[1]): path for stem, path in named.items() if re.fullmatch(r"client_\d+", stem)}
        if "global" in named:
            found[int(number[1])] = Files(named["global"], named.get("start"), dict(sorted(clients.items())))
    if not found:
        raise LookupError(
            f"{folder} holds no checkpoints; expected are round_000/global.pt, round_000/client_0.pt and so on "
            f"({', '.join(SUFFIXES)})."
        )
    known = {index: one for index, one in sorted(found.items()) if one.start is not None or index - 1 in found}
    if not known:
        raise LookupError(
            f"{folder} holds round {min(found)} only, and what its clients received is unknown; add start.pt beside "
            "its global model, or the round before."
        )
    return dict(sorted(found.items()))


def read_model(path: Path, task: Task) -> Model:
    """theta and buffers of a state dict.

    Raises:
        ValueError: If the file is no state dict of the task's architecture; it is named.
    """
    tensors = read_tensors(path)
    layout = task.layout
    known = {name for name, _ in (*layout.parameters, *layout.buffers)} | set(task.model.state_dict())
    if extra := sorted(set(tensors) - known):
        raise ValueError(
            f"{path}: the model has no tensor {extra[0]!r}; was it trained with another model? "
            f"Its tensors are {', '.join(sorted(known)[:8])}."
        )
    try:
        model = layout.theta(tensors).float(), layout.buffer_vector(tensors).float()
    except ValueError as reason:
        raise ValueError(f"{path}: {reason}") from reason
    if not all(bool(torch.isfinite(part).all()) for part in model):
        raise ValueError(f"{path} holds values that are not finite; leave this client or round out.")
    return model


def _write(
    path: Path,
    task: Task,
    experiment: Experiment,
    files: dict[int, Files],
    sizes: dict[int, int],
    progress: Progress | None,
) -> None:
    """Every round whose start is known, then the commit point."""
    before: Model | None = None
    previous = torch.zeros(task.layout.size)
    for index, one in counted(list(files.items()), progress):
        contiguous = index - 1 in files
        start = read_model(one.start, task) if one.start is not None else before if contiguous else None
        end = read_model(one.end, task)
        if start is not None:
            record = _record(index, one, task, start, end, previous, sizes)
            store.write_round(path, record, experiment.keep, experiment.rounds)
            if len(record.ids):
                previous = record.fma - start[0]
        before = end
    theta, buffers = before if before is not None else (task.theta, task.buffers)
    server = Server(theta, buffers, previous, {}, {}, experiment.rounds)
    store.write_tensors(path / "state.safetensors", server.tensors(), {"next": server.next})


def _record(
    index: int, files: Files, task: Task, start: Model, end: Model, previous: Tensor, sizes: dict[int, int]
) -> Round:
    models = [read_model(path, task) for path in files.clients.values()]
    empty = (torch.zeros(0, task.layout.size), torch.zeros(0, task.layout.buffer_size))
    clients, buffers = (torch.stack(part) for part in zip(*models, strict=True)) if models else empty
    counts = torch.tensor([sizes.get(client, 1) for client in files.clients], dtype=torch.int64)
    held = end[1][None] if len(end[1]) else None
    test = evaluate(task, end[0][None], torch.ones(1, 1), split="test", buffers=held)
    metrics = {name: float(value) for name, value in test.items()}
    return Round(
        index=index,
        ids=torch.tensor(list(files.clients), dtype=torch.int64),
        sizes=counts,
        weights=counts.double() / counts.sum() if len(counts) else torch.zeros(0, dtype=torch.float64),
        gram=gram(start[0], previous, end[0] - start[0], clients - start[0]),
        metrics={**metrics, "accuracy": 1 - metrics["error"]},
        start=start[0],
        end=end[0],
        clients=clients,
        start_buffers=start[1],
        end_buffers=end[1],
        client_buffers=buffers,
    )


def _experiment(files: dict[int, Files], model: str, dataset: str, overrides: tuple[str, ...]) -> Experiment:
    cohorts = [list(one.clients) for one in files.values()]
    number = max((client for cohort in cohorts for client in cohort), default=0) + 1
    base = {
        "rounds": max(files) + 1,
        "task": {"dataset": dataset, "model": model},
        "clients": {"number": number, "per_round": max(1, *map(len, cohorts), 0), "partition": {"name": "iid"}},
    }
    return read(Experiment.model_validate(base), *overrides)


def _sizes(folder: Path, files: dict[int, Files]) -> dict[int, int]:
    """Samples by client; nothing where they are unknown."""
    path = folder / "sizes.json"
    if not path.exists():
        return {}
    try:
        sizes = {int(client): int(size) for client, size in json.loads(path.read_text()).items()}
    except (ValueError, TypeError, AttributeError) as reason:
        raise ValueError(f'{path} cannot be read ({one_line(reason)}); expected is {{"0": 120, "1": 80}}.') from reason
    clients = {client for one in files.values() for client in one.clients}
    if absent := sorted(clients - sizes.keys()):
        raise ValueError(f"{path} gives no size of client {absent[0]}; it has {sorted(sizes)}.")
    if low := [client for client, size in sizes.items() if size < 1]:
        raise ValueError(f"{path} gives client {low[0]} {sizes[low[0]]} samples; sizes are 1 or more.")
    return sizes


def _identity(folder: Path, files: dict[int, Files], experiment: Experiment, progress: Progress | None) -> str:
    """Eight hexadecimal digits of what is imported: settings, names and bytes of all files."""
    total = hashlib.sha256(experiment.hash.encode())
    for one in counted(list(files.values()), progress):
        for path in filter(None, (one.end, one.start, *one.clients.values())):
            total.update(str(path.relative_to(folder)).encode())
            with open(path, "rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    sizes = folder / "sizes.json"
    total.update(sizes.read_bytes() if sizes.exists() else b"")
    return total.hexdigest()[:8]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"

"""Models of a round's clients one at a time, so that a cohort need not fit into memory: recorded, trained again, or of
runs that repeat the experiment.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.runs.run import Run
from drift.simulation.retrain import replayed
from drift.simulation.run_index import find
from drift.store import chain, files, row_matrices
from drift.store.round_record import Round
from landscape.model.samples import leaves
from landscape.results.parsed_text import dotted
from landscape.results.progress import Progress

Rows = Callable[[int], tuple[Tensor, Tensor]]
"""(row of the cohort) -> model (d,) and floating buffers (b,)."""


def read_models(run: Run, index: int) -> tuple[Round, Rows]:
    """The record of a round without its client models, and a reader of these, with the same bits as `run.round`.

    A model is read from the file when it is asked for.

    Raises:
        LookupError: If the round kept no clients, or its file is damaged or of another run.
    """
    path = files.round_path(run.folder, index)
    files.require_inside(path, run.folder)
    chain.remembered(run.folder, name := f"rounds/{path.name}").require(name)
    tensors, about = files.read_tensors(path)
    files.require_number(path, about, index)
    names = ("ids", "sizes", "weights", "gram", "start", "end", "start_buffers", "end_buffers")
    fields: dict[str, Any] = {name: tensors[name] for name in names if name in tensors}
    extras = {name: tensors[f"extras.{name}"] for name in ("excluded",) if f"extras.{name}" in tensors}
    record = run.named(Round(index=index, **fields, extras=extras))
    if "client_deltas" in tensors:
        start, deltas = record.kept("start"), tensors["client_deltas"]
        return record, lambda row: (start + deltas[row].to(start), tensors["client_buffers"][row])
    clients = row_matrices.Rows(tensors["clients"] if "clients" in tensors else record.kept("clients"))
    return record, lambda row: (clients[row], tensors["client_buffers"][row])


@contextmanager
def retrain_models(
    run: Run, record: Round, replicates: int, *, memory: int, workers: int = 1, progress: Progress | None = None
) -> Iterator[list[Rows]]:
    """Replicates 1, 2, .. of every client of a round, trained again from the same start; `replicates` in all.

    They are stored in memory if they fit, else in a temporary file (in the folder TMPDIR).

    Args:
        memory: Bytes that they may take.
        workers: Processes that share the trainings.
        progress: Called with the number of finished trainings.
    """
    ids, start = record.ids.tolist(), record.kept("start")
    jobs = [(record.index, client, number) for number in range(1, replicates + 1) for client in ids]
    with TemporaryDirectory(prefix="fedscape-") as folder:
        thetas = _table(Path(folder) / "thetas", len(jobs), start, memory)
        buffers = torch.empty(len(jobs), len(record.start_buffers), dtype=record.start_buffers.dtype)
        for index, models in replayed(run, jobs, workers=workers, progress=progress):
            thetas[index], buffers[index] = models
        yield [_rows(thetas[low : low + len(ids)], buffers[low:]) for low in range(0, len(jobs), len(ids))]
        del thetas  # unmapped before its file goes


def _rows(thetas: Tensor, buffers: Tensor) -> Rows:
    return lambda row: (thetas[row], buffers[row])


def _table(path: Path, rows: int, like: Tensor, memory: int) -> Tensor:
    """An empty tensor (rows, d), in memory or in a file."""
    if rows * like.numel() * like.element_size() <= memory:
        return torch.empty(rows, len(like), dtype=like.dtype)
    return torch.from_file(str(path), shared=True, size=rows * like.numel(), dtype=like.dtype).view(rows, -1)


IGNORED = ("seed", "keep", "evaluate_every", "threads")
"""Settings in which repetitions may differ: all but the seed change no model beyond rounding."""


def repetitions(run: Run, others: Sequence[str]) -> list[Run]:
    """The runs in the folder of `run` (or at paths) that repeat its experiment with other seeds on the same partition.

    Args:
        others: Paths, names of folders beside the run's, or the beginning of such a name.

    Raises:
        LookupError: If there is no such run.
        ValueError: If one is named twice, differs in more than its seed, or has other data.
    """
    repeated = [Run(find(run.folder.parent, text), run.context) for text in others]
    seeds = [member.experiment.seed for member in (run, *repeated)]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"the runs have seeds {seeds}; each seed may occur once.")
    for other in repeated:
        _require_same(run, other)
    return [Run(other.folder, other.context) for other in repeated]  # without the data that were compared


def require_same_cohort(runs: Sequence[Run], records: Sequence[Round]) -> None:
    """Raise ValueError for a round in which the runs trained other clients."""
    first = records[0].ids.tolist()
    for run, record in zip(runs, records, strict=True):
        if (ids := record.ids.tolist()) != first:
            raise ValueError(
                f"round {record.index} has clients {_short(first)} in {runs[0].name} and {_short(ids)} in {run.name}: "
                "cohorts follow the seed. Repeat the run with every client in every round (clients.per_round = "
                f"{run.experiment.clients.number}), or use the estimator local."
            )


def _require_same(run: Run, other: Run) -> None:
    mine, theirs = map(_settings, (run, other))
    if changed := sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)):
        key = changed[0]
        raise ValueError(
            f"{other.name} has {key} = {theirs.get(key)}, {run.name} has {mine.get(key)}; runs must differ in their "
            "seed alone."
        )
    parts = zip(run.parts, other.parts, strict=True)
    inputs = (leaves(member.task.split("train").inputs) for member in (run, other))
    same = all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(*inputs, strict=True))
    if not same or not all(np.array_equal(a, b) for a, b in parts):
        raise ValueError(
            f"the clients of {other.name} hold other samples than those of {run.name}; train both with --set "
            "clients.partition_seed=0, and without task.train_samples and clients.valid_ratio, which follow the seed."
        )


def _settings(run: Run) -> dict[str, Any]:
    return dotted({key: value for key, value in run.experiment.resolved().items() if key not in IGNORED})


def _short(ids: list[int]) -> str:
    return f"[{', '.join(map(str, ids[:6]))}{', ..' if len(ids) > 6 else ''}]"

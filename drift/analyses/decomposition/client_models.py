"""Models of a round's clients one at a time, so that a cohort need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from drift.config import chain
from drift.runs.run import Run
from drift.simulation.retrain import replay
from drift.store import files
from drift.store.round_record import Round
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
    chain.require_own(run.folder, f"rounds/{path.name}")
    tensors, about = files.read_tensors(path)
    files.require_number(path, about, index)
    names = ("ids", "sizes", "weights", "gram", "start", "end", "start_buffers", "end_buffers")
    fields: dict[str, Any] = {name: tensors[name] for name in names if name in tensors}
    record = Round(index=index, **fields)
    if "client_deltas" in tensors:
        start, deltas = record.kept("start"), tensors["client_deltas"]
        return record, lambda row: (start + deltas[row].to(start), tensors["client_buffers"][row])
    clients = tensors["clients"] if "clients" in tensors else record.kept("clients")
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
    size, extra = len(start), len(record.start_buffers)
    at_once = max(workers, memory // (4 * start.element_size() * (size + extra)))
    with TemporaryDirectory(prefix="fedscape-") as folder:
        thetas = _table(Path(folder) / "thetas", len(jobs), start, memory)
        buffers = torch.empty(len(jobs), extra, dtype=record.start_buffers.dtype)
        for low in range(0, len(jobs), at_once):
            part = jobs[low : low + at_once]
            shifted = _shifted(progress, low, len(jobs))
            thetas[low : low + len(part)], buffers[low : low + len(part)] = replay(
                run, part, workers=workers, progress=shifted
            )
        yield [_rows(thetas[low : low + len(ids)], buffers[low:]) for low in range(0, len(jobs), len(ids))]
        del thetas  # unmapped before its file goes


def _rows(thetas: Tensor, buffers: Tensor) -> Rows:
    return lambda row: (thetas[row], buffers[row])


def _table(path: Path, rows: int, like: Tensor, memory: int) -> Tensor:
    """An empty tensor (rows, d), in memory or in a file."""
    if rows * like.numel() * like.element_size() <= memory:
        return torch.empty(rows, len(like), dtype=like.dtype)
    return torch.from_file(str(path), shared=True, size=rows * like.numel(), dtype=like.dtype).view(rows, -1)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    return None if progress is None else lambda done, _: progress(before + done, total)

"""Losses at affine combinations of a few models: the one evaluator of lines, planes and simplices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from landscape.model.batchnorm import Statistics, resolve_statistics
from landscape.model.losses import is_coupled
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.stated import state
from landscape.sweep import vmap_points
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import stack_models
from landscape.sweep.memory import explain_oom as memory_said
from landscape.sweep.threads import PointPool, chunks, evaluate_chunks
from landscape.sweep.worker import Work, Worker

MEMORY = 512 * 2**20
"""Bytes of point models in memory at a time."""

CHUNK_POINTS = 64
"""Most point models in a chunk: more of them share little more work."""

OnPoints = Callable[[slice, dict[str, Tensor]], None]


@takes_models("basis")
@torch.no_grad()
def evaluate(
    task: Task,
    basis: Tensor,
    coefficients: Tensor | np.ndarray,
    *,
    buffers: Tensor | None = None,
    on_points: OnPoints | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> dict[str, Tensor]:
    """Mean metrics over a split at the models coefficients @ basis, in eval mode and without gradients.

        basis = torch.stack([a, b])
        landscape.evaluate(task, basis, [[1.0, 0.0], [0.5, 0.5]])["loss"]  # of a, and of the mean

    On a CPU the bits of a value depend neither on the other points, nor on chunks, nor on the number of workers (of one
    torch thread each). On a GPU points are evaluated one by one or in batches (`landscape.sweep.vmap_points`), which of
    the two is faster, and the last bits of a value may change.

    Args:
        task: Model, loss and samples.
        basis: Models or directions, shape (n, d).
        coefficients: One row per point, shape (P, n).
        buffers: Floating buffers of the basis, shape (n, b); by default those that its models carry.
        on_points: Called with (points, their values) about every two seconds.
        evaluation, options: Samples, metrics, batch statistics, workers and more: a `landscape.Evaluation`, and fields
            of it by name.

    Returns:
        For each metric values (P,), (P, v), with groups (P, groups) or (P, groups, v), in float64 on the CPU; the
        loss is in the task's unit (nats for cross-entropy). NaN where a group or class has no samples.

    Raises:
        ValueError: If shapes do not match, a metric or split is unknown, the split is empty, or models lack their
            buffers.
    """
    evaluation = evaluation.but(**options)
    work, progress = sweep_work(task, basis, evaluation, buffers=buffers), evaluation.progress
    try:
        rows = torch.as_tensor(coefficients, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as reason:
        raise ValueError(f"coefficients are {coefficients!r:.40}; give numbers (P, {len(work.basis)}).") from reason
    if rows.ndim != 2 or rows.shape[1] != len(work.basis):
        raise ValueError(f"coefficients have shape {tuple(rows.shape)}; the basis needs (P, {len(work.basis)}).")
    _state(work, rows, resolve_statistics(task, evaluation.statistics, buffers))
    points, basis, measures = rows.tolist(), work.basis, work.measures
    values: dict[str, Tensor] = {}
    done, report, soon = 0, progress or (lambda done, total: None), not (on_points is None and progress is None)
    report(0, len(points))
    memory = evaluation.memory
    if memory is None:
        on_gpu = basis.device.type == "cuda"
        memory = int(torch.cuda.mem_get_info(basis.device)[0] // 2) if on_gpu else MEMORY
    for span, chunk in _chunk_values(work, points, memory, evaluation.workers, soon):
        done += span.stop - span.start
        report(done, len(points))
        for name in measures:
            if name not in values:
                values[name] = torch.empty(len(points), *chunk[name].shape[1:], dtype=torch.float64)
            values[name][span] = chunk[name]
        if on_points is not None:
            on_points(span, chunk)
    return {name: values.get(name, torch.empty(0, dtype=torch.float64)) for name in measures}


def _state(work: Work, rows: Tensor, how: Statistics) -> None:
    """State the batch statistics of points: those of single models are their own where the basis has buffers."""
    if not work.task.layout.buffers:
        return
    single = (rows.count_nonzero(1) == 1) & (rows.amax(1) == 1) & (work.buffers is not None)
    if bool(single.any()):
        state({"statistics": "own"})
    if not bool(single.all()):
        state({"statistics": how} | ({} if work.calibration is None else {"calibration": len(work.calibration)}))


def sweep_work(task: Task, basis: Tensor, evaluation: Evaluation = USUAL, *, buffers: Tensor | None = None) -> Work:
    """What all points of a sweep share; a `landscape.sweep.worker.Worker` of it gives the bits of `evaluate`.

    Arguments and errors are those of `evaluate`.
    """
    samples, measures = task.split(evaluation.split), task.measures(evaluation.metrics)
    groups, block = evaluation.groups, evaluation.block
    basis = basis.detach() if isinstance(basis, Tensor) else stack_models(basis)
    _check(task, basis, buffers, samples)
    if groups is not None:
        groups = _checked_groups(torch.as_tensor(groups), samples).to(basis.device)
    how, fixed = resolve_statistics(task, evaluation.statistics, buffers), evaluation.calibration_of(task, buffers)
    block = len(samples) if any(map(is_coupled, (task.loss, *measures.values()))) else block
    basis_buffers = None if buffers is None or how == "task" else buffers
    return Work(task, basis, basis_buffers, samples, groups, measures, block, fixed, evaluation.precision)


def _chunk_values(
    work: Work, points: list[list[float]], memory: int, workers: int | PointPool, soon: bool
) -> Iterator[tuple[slice, dict[str, Tensor]]]:
    """(points, values) per chunk; the first chunks are small if values are reported `soon`."""
    basis = work.basis
    if not isinstance(workers, int):
        return workers.evaluate_points(work, points, _most(basis, memory))
    with memory_said(f"a sweep of models of {basis.shape[1]} parameters", "lower block, or stop other programs"):
        worker = Worker(work)
    many = vmap_points.batch_points(worker, memory) if basis.device.type in vmap_points.DEVICES else None
    if many is not None:
        return vmap_points.evaluate_faster(worker, many, points)
    most = _most(basis, memory // workers)
    small = min(most, 4 * len(basis)) if worker.shared else 1
    return evaluate_chunks(worker, points, chunks(len(points), small if soon else most, most, workers), workers)


def _most(basis: Tensor, memory: int) -> int:
    """Point models that fit into so many bytes."""
    return max(1, min(CHUNK_POINTS, memory // (basis.shape[1] * basis.element_size() + 1)))


def _check(task: Task, basis: Tensor, buffers: Tensor | None, samples: Samples) -> None:
    if basis.ndim != 2:
        raise ValueError(f"basis has shape {tuple(basis.shape)}; it must be (n, d): stack the models.")
    task.layout.named(basis[0])
    if buffers is not None and tuple(buffers.shape) != (len(basis), task.layout.buffer_size):
        raise ValueError(
            f"buffers have shape {tuple(buffers.shape)}; the basis needs ({len(basis)}, {task.layout.buffer_size})."
        )
    if len(samples) == 0:
        raise ValueError("the split has no samples; a mean needs at least one.")


def _checked_groups(groups: Tensor, samples: Samples) -> Tensor:
    integral = not groups.is_floating_point() and groups.shape == (len(samples),)
    if not integral or int(groups.min()) < 0:
        raise ValueError(
            f"groups have shape {tuple(groups.shape)} and type {groups.dtype}; give one whole number from 0 on "
            f"for each of the {len(samples)} samples."
        )
    return groups.long()


def model_metrics(
    task: Task, theta: Tensor, buffers: Tensor | None = None, *, split: Split = "test", **options: Any
) -> dict[str, float]:
    """Loss and metrics of one model (d,) on a split, by name, as `landscape.evaluate`.

    Args:
        buffers: Floating buffers (b,) of the model; by default the model's own.
    """
    rows = None if buffers is None or not len(buffers) else buffers[None]
    values = evaluate(task, theta[None], torch.ones(1, 1), buffers=rows, split=split, **options)
    return {name: float(value) for name, value in values.items()}

"""The loss at affine combinations of a few models: the one evaluator of every line, plane and simplex."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from landscape.model.batchnorm import CALIBRATION, Statistics, calibration_samples, resolve_statistics
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.results.progress import Progress
from landscape.sweep import vmap_points
from landscape.sweep.first_layer import combine
from landscape.sweep.grid import stack_models
from landscape.sweep.memory import explain_oom as memory_said
from landscape.sweep.memory import keep_memory
from landscape.sweep.precision import Precision, check_precision
from landscape.sweep.threads import PointPool, chunks, evaluate_chunks, evaluate_in_order
from landscape.sweep.worker import Work, Worker

MEMORY = 512 * 2**20
"""Bytes of point models held at once."""

CHUNK_POINTS = 64
"""Most point models held at once: more save little of the work that is shared in a chunk."""

OnPoints = Callable[[slice, dict[str, Tensor]], None]


@takes_models("basis")
@torch.no_grad()
def evaluate(
    task: Task,
    basis: Tensor,
    coefficients: Tensor | np.ndarray,
    *,
    split: Split = "test",
    metrics: tuple[str, ...] | None = None,
    buffers: Tensor | None = None,
    block: int | None = None,
    memory: int | None = None,
    on_points: OnPoints | None = None,
    groups: Tensor | None = None,
    statistics: Statistics | None = None,
    calibration: Samples | int = CALIBRATION,
    workers: int | PointPool = 1,
    precision: Precision = "exact",
    progress: Progress | None = None,
) -> dict[str, Tensor]:
    """Mean metrics over a split at the models coefficients @ basis, in eval mode and without gradients.

    On a CPU a point's value has the same bits whichever other points are asked for, in whatever chunks, by however
    many workers of one torch thread each. On a GPU points are evaluated together (`landscape.sweep.vmap_points`), which
    may change a value's last bits.

    Args:
        basis: Models or directions, shape (n, d).
        coefficients: One row a point, shape (P, n).
        metrics: "loss" and names of the task's metrics, each with values (n,) or (n, v) a sample; all where not given.
        buffers: Floating buffers of the basis, shape (n, b); the task's own where not given.
        block: Samples in one forward pass; chosen from the size of the activations where not given.
        memory: Bytes of point models held at once; on a GPU with their activations, by default half of what is free.
        on_points: Called with (points, their values) as points are finished, about every two seconds.
        groups: Group 0, 1, .. of each sample, shape (samples,): means are then taken within groups.
        statistics: Of batch normalisation. "recomputed": on `calibration` at every point but those that are one
            model of the basis, whose `buffers` were given; "averaged": `buffers` combined like the models; "own": the
            task's. By default averaged where `buffers` are given, else own; `surface` recomputes.
        calibration: Samples of the statistics, or how many of the split train (else of `split`).
        workers: Threads that share the points, or the samples where these are fewer; with more than one each uses one
            core. A GPU needs no more than one.
            Or other processes that do (`landscape.sweep.threads.PointPool`).
        precision: "fast" lets inner layers multiply in bfloat16 where the processor can (`landscape.sweep.precision`);
            `surface` measures and states the error that this makes.
        progress: Called with the points that are done and all points.

    Returns:
        For each metric values (P,), (P, v), with groups (P, groups) or (P, groups, v), in float64 on the CPU; the
        loss is in the task's unit (nats for cross-entropy). NaN where a group or class has no samples.

    Raises:
        ValueError: If shapes do not match, a metric or split is unknown, or the split is empty.
    """
    samples, measures = task.split(split), task.measures(metrics)
    rows = torch.as_tensor(coefficients, dtype=torch.float64)
    basis = basis.detach() if isinstance(basis, Tensor) else stack_models(basis)
    _check(task, basis, rows, buffers, samples)
    points = rows.tolist()
    if groups is not None:
        groups = _checked_groups(groups, samples).to(basis.device)
    if isinstance(workers, int) and workers < 1:
        raise ValueError(f"workers is {workers}; a sweep needs one or more.")
    how = resolve_statistics(statistics, buffers)
    pool = task.samples.get("train", samples)
    fixed = calibration_samples(pool, calibration) if how == "recomputed" else None
    basis_buffers = None if buffers is None or how == "own" else buffers
    work = Work(task, basis, basis_buffers, samples, groups, measures, block, fixed, check_precision(precision))
    values: dict[str, Tensor] = {}
    done, report, soon = 0, progress or (lambda done, total: None), not (on_points is None and progress is None)
    report(0, len(points))
    for part, chunk in _chunk_values(work, points, _resolve_memory(basis, memory), workers, soon):
        done += part.stop - part.start
        report(done, len(points))
        for name in measures:
            if name not in values:
                values[name] = torch.empty(len(points), *chunk[name].shape[1:], dtype=torch.float64)
            values[name][part] = chunk[name]
        if on_points is not None:
            on_points(part, chunk)
    return {name: values.get(name, torch.empty(0, dtype=torch.float64)) for name in measures}


def loss(flat: Flat, basis: Tensor, coefficients: Tensor, samples: Samples) -> Tensor:
    """Mean loss () of `samples` at coefficients (n,) @ basis (n, d), differentiable once in the coefficients.

    One forward and one backward pass through the model, then the n inner products dL/dc_j = <basis_j, dL/dtheta>.
    `flat` is left at the point, in the mode (train or eval) that it was in; its `grad` holds dL/dtheta.
    """
    return _Loss.apply(coefficients, basis, flat, samples)


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, coefficients: Tensor, basis: Tensor, flat: Flat, samples: Samples) -> Tensor:
        flat.load(combine(basis, coefficients.tolist()))
        with torch.enable_grad():
            value = flat.gradient(samples)
        ctx.save_for_backward((basis @ flat.grad).to(coefficients))
        return value.to(coefficients)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return outer[0] * gradient, None, None, None


def _chunk_values(
    work: Work, points: list[list[float]], memory: int, workers: int | PointPool, soon: bool
) -> Iterator[tuple[slice, dict[str, Tensor]]]:
    """Chunks of points, each with its values; small ones first where these are wanted `soon`."""
    basis = work.basis
    if not isinstance(workers, int):
        return workers.evaluate_points(work, points, _most(basis, memory))
    keep_memory()
    with memory_said(f"a sweep of models of {basis.shape[1]} parameters", "lower block, or stop other programs"):
        worker = Worker(work)
    many = vmap_points.batch_points(worker, memory) if basis.device.type in vmap_points.DEVICES else None
    if many is not None:
        return evaluate_in_order(many, points, chunks(len(points), many.most, many.most))
    most = _most(basis, memory // workers)
    small = min(most, 4 * len(basis)) if worker.shared else 1
    return evaluate_chunks(worker, points, chunks(len(points), small if soon else most, most, workers), workers)


def _most(basis: Tensor, memory: int) -> int:
    """Point models held at once within so many bytes, thrice each: plain, packed, and what its last layers receive."""
    return max(1, min(CHUNK_POINTS, memory // (3 * basis.shape[1] * basis.element_size() + 1)))


def _check(
    task: Task,
    basis: Tensor,
    coefficients: Tensor,
    buffers: Tensor | None,
    samples: Samples,
) -> None:
    if basis.ndim != 2:
        raise ValueError(f"basis has shape {tuple(basis.shape)}; it must be (n, d): stack the models.")
    task.layout.named(basis[0])
    if coefficients.ndim != 2 or coefficients.shape[1] != len(basis):
        raise ValueError(f"coefficients have shape {tuple(coefficients.shape)}; the basis needs (P, {len(basis)}).")
    if buffers is not None and tuple(buffers.shape) != (
        len(basis),
        task.layout.buffer_size,
    ):
        raise ValueError(
            f"buffers have shape {tuple(buffers.shape)}; the basis needs ({len(basis)}, {task.layout.buffer_size})."
        )
    if len(samples) == 0:
        raise ValueError("the split has no samples; a mean needs at least one.")


def _checked_groups(groups: Tensor, samples: Samples) -> Tensor:
    whole = not groups.is_floating_point() and groups.shape == (len(samples),)
    if not whole or int(groups.min()) < 0:
        raise ValueError(
            f"groups have shape {tuple(groups.shape)} and type {groups.dtype}; give one whole number from 0 on "
            f"for each of the {len(samples)} samples."
        )
    return groups.long()


def _resolve_memory(basis: Tensor, memory: int | None) -> int:
    if memory is not None:
        return memory
    if basis.device.type == "cuda":
        return int(torch.cuda.mem_get_info(basis.device)[0] // 2)
    return MEMORY

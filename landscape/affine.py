"""The loss at affine combinations of a few models: the one evaluator of every line, plane and simplex."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from landscape.batchnorm import CALIBRATION, Statistics, calibration_samples, chosen_statistics, recomputed
from landscape.firstlayer import FirstLayer, combine, first_layer
from landscape.flat import Flat
from landscape.kernels import quicken
from landscape.metrics import Means
from landscape.samples import Samples, leaves
from landscape.task import PerSample, Split, Task

MEMORY = 512 * 2**20
"""Bytes of point models held at once."""

BLOCK_BYTES = 6 * 2**20
"""Bytes that the largest output of a block of samples may take (measured: flat optimum between 3 and 12 MiB)."""

GPU_BLOCK_BYTES = 2**28
"""The same on other devices, where a block must be large enough to fill the device (not measured)."""

CHUNK_POINTS = 64
"""Most point models held at once: more save little of the work that is shared in a chunk."""

CHUNK_SECONDS = 2.0
"""About how often finished points are handed out."""

OnPoints = Callable[[slice, dict[str, Tensor]], None]


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
    workers: int = 1,
) -> dict[str, Tensor]:
    """Mean metrics over a split at the models coefficients @ basis, in eval mode and without gradients.

    A point's value has the same bits whichever other points are asked for, in whatever chunks, by however many
    workers of one torch thread each.

    Args:
        basis: Models or directions, shape (n, d).
        coefficients: One row a point, shape (P, n).
        metrics: "loss" and names of the task's metrics, each with values (n,) or (n, v) a sample; all where not given.
        buffers: Floating buffers of the basis, shape (n, b); the task's own where not given.
        block: Samples in one forward pass; chosen from the size of the activations where not given.
        memory: Bytes of point models held at once; on a GPU by default half of what is free.
        on_points: Called with (points, their values) as points are finished, about every two seconds.
        groups: Group 0, 1, .. of each sample, shape (samples,): means are then taken within groups.
        statistics: Of batch normalisation. "recomputed": on `calibration` at every point but those that are one
            model of the basis, whose `buffers` were given; "averaged": `buffers` combined like the models; "own": the
            task's. By default averaged where `buffers` are given, else own; `surface` recomputes.
        calibration: Samples of the statistics, or how many of the split train (else of `split`).
        workers: Threads that share the points; with more than one each uses one core.

    Returns:
        For each metric values (P,), (P, v), with groups (P, groups) or (P, groups, v), in float64 on the CPU; the
        loss is in the task's unit (nats for cross-entropy). NaN where a group or class has no samples.

    Raises:
        ValueError: If shapes do not match, a metric or split is unknown, or the split is empty.
    """
    samples, measures = task.split(split), task.measures(metrics)
    rows = torch.as_tensor(coefficients, dtype=torch.float64)
    basis = basis.detach()
    _check(task, basis, rows, buffers, samples)
    points = rows.tolist()
    if groups is not None:
        groups = _checked_groups(groups, samples).to(basis.device)
    if workers < 1:
        raise ValueError(f"workers is {workers}; a sweep needs one or more.")
    how = chosen_statistics(statistics, buffers)
    pool = task.samples.get("train", samples)
    fixed = calibration_samples(pool, calibration) if how == "recomputed" else None
    kept = None if buffers is None or how == "own" else buffers
    work = _Work(task, basis, kept, samples, groups, measures, block, fixed)
    most = max(1, min(CHUNK_POINTS, _memory(basis, memory) // workers // (basis.shape[1] * basis.element_size() + 1)))
    first = _Worker(work)
    least = most if on_points is None and workers == 1 else min(most, 4 * len(basis) if first.shared else workers)
    values: dict[str, Tensor] = {}
    for part, found in _finished(first, points, _chunks(len(points), least, most), workers):
        for name in measures:
            if name not in values:
                values[name] = torch.empty(len(points), *found[name].shape[1:], dtype=torch.float64)
            values[name][part] = found[name]
        if on_points is not None:
            on_points(part, found)
    return {name: values.get(name, torch.empty(0, dtype=torch.float64)) for name in measures}


def loss(flat: Flat, basis: Tensor, coefficients: Tensor, samples: Samples) -> Tensor:
    """Mean loss () of `samples` at coefficients (n,) @ basis (n, d), differentiable once in the coefficients.

    One forward and one backward pass through the model, then the n inner products dL/dc_j = <basis_j, dL/dtheta>.
    `flat` is left at the point, in the mode (train or eval) that it was in; its `grad` holds dL/dtheta.
    """
    return _Loss.apply(coefficients, basis, flat, samples)


@torch.no_grad()
def plan(flat: Flat, basis: Tensor, samples: Samples, block: int | None = None) -> tuple[int, FirstLayer | None]:
    """Samples in a forward pass, and the first layer if it is shared; never a function of the points."""
    flat.load(basis[0])
    probe = samples[:2]
    shared = first_layer(flat, basis, probe)
    if block is None:
        widest = max([_widest(flat, probe), *(leaf[0].nbytes for leaf in leaves(probe.inputs))])
        limit = BLOCK_BYTES if basis.device.type == "cpu" else GPU_BLOCK_BYTES
        block = max(16, min(2048, limit // widest))
    return block, shared


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


def _chunks(count: int, least: int, most: int) -> Iterator[slice]:
    """Consecutive pieces, from `least` to `most` long, that grow until one takes CHUNK_SECONDS."""
    start, size = 0, least
    while start < count:
        begun = time.perf_counter()
        yield slice(start, min(start + size, count))
        start += size
        if time.perf_counter() - begun < CHUNK_SECONDS:
            size = min(2 * size, most)


@dataclass
class _Work:
    """What all points of a sweep have in common."""

    task: Task
    basis: Tensor
    buffers: Tensor | None
    samples: Samples
    groups: Tensor | None
    measures: dict[str, PerSample]
    block: int | None
    calibration: Samples | None


class _Worker:
    """One thread's model, and memory for the point models of a chunk, which is used again for the next."""

    def __init__(self, work: _Work) -> None:
        self.work = work
        self.flat = work.task.flat(work.basis)
        self.own = self.flat.buffers.clone()
        self.flat.load(work.basis[0])
        quicken(self.flat, work.samples[:2])
        self.block, self.shared = plan(self.flat, work.basis, work.samples, work.block)
        self.parameters = [self.flat.module.get_parameter(name) for name, _ in self.flat.layout.parameters]
        self.models: list[Tensor] = []

    def chunk(self, points: list[list[float]]) -> dict[str, Tensor]:
        """Mean metrics at a few points; each block of samples meets all of them while it is in the cache."""
        work, flat = self.work, self.flat
        self.models.extend(torch.empty_like(work.basis[0]) for _ in range(len(points) - len(self.models)))
        models = [
            list(flat.layout.named(combine(work.basis, row, out=held)).values())
            for row, held in zip(points, self.models, strict=False)
        ]
        statistics = [self._statistics(row, model) for row, model in zip(points, models, strict=True)]
        groups = None if work.groups is None else int(work.groups.max()) + 1
        means = {name: Means(measure, len(points), groups) for name, measure in work.measures.items()}
        for start in range(0, len(work.samples), self.block):
            part = work.samples[start : start + self.block]
            inputs, targets = flat.cast(part.inputs), part.targets.to(work.basis.device)
            group = None if work.groups is None else work.groups[start : start + self.block]
            if self.shared is not None:
                self.shared.prepare(inputs)
            for point, model in enumerate(models):
                _bind(self.parameters, model)
                flat.buffers.copy_(statistics[point])
                if self.shared is not None:
                    self.shared.at(points[point])
                outputs = flat.outputs(inputs)
                for mean in means.values():
                    mean.add(point, outputs, targets, group)
            if self.shared is not None:
                self.shared.release()
        return {name: mean.found() for name, mean in means.items()}

    def _statistics(self, row: list[float], model: list[Tensor]) -> Tensor:
        """Floating buffers (b,) of a point."""
        work = self.work
        mixed = self.own if work.buffers is None else combine(work.buffers.to(self.own), row)
        on_path = work.buffers is not None and sorted(row) == [0.0] * (len(row) - 1) + [1.0]
        if work.calibration is None or on_path:
            return mixed
        _bind(self.parameters, model)
        self.flat.buffers.copy_(mixed)
        return recomputed(self.flat, work.calibration)


def _finished(
    first: _Worker, points: list[list[float]], parts: Iterator[slice], workers: int
) -> Iterator[tuple[slice, dict[str, Tensor]]]:
    """Chunks in order, each with its values."""
    if workers == 1:
        for part in parts:
            yield part, first.chunk(points[part])
        return
    threads, held, spare = torch.get_num_threads(), threading.local(), iter([first])

    def begin() -> None:
        torch.set_num_threads(1)

    def run(part: slice) -> dict[str, Tensor]:
        with torch.no_grad():  # grad mode belongs to a thread
            if not hasattr(held, "worker"):
                held.worker = next(spare, None) or _Worker(first.work)
            return held.worker.chunk(points[part])

    ahead: deque[tuple[slice, Future[dict[str, Tensor]]]] = deque()
    try:
        with ThreadPoolExecutor(workers, initializer=begin) as pool:
            for part in parts:
                ahead.append((part, pool.submit(run, part)))
                if len(ahead) >= 2 * workers:
                    done, future = ahead.popleft()
                    yield done, future.result()
            while ahead:
                done, future = ahead.popleft()
                yield done, future.result()
    finally:
        torch.set_num_threads(threads)


def _checked_groups(groups: Tensor, samples: Samples) -> Tensor:
    whole = not groups.is_floating_point() and groups.shape == (len(samples),)
    if not whole or int(groups.min()) < 0:
        raise ValueError(
            f"groups have shape {tuple(groups.shape)} and type {groups.dtype}; give one whole number from 0 on "
            f"for each of the {len(samples)} samples."
        )
    return groups.long()


def _memory(basis: Tensor, given: int | None) -> int:
    if given is not None:
        return given
    if basis.device.type == "cuda":
        return int(torch.cuda.mem_get_info(basis.device)[0] // 2)
    return MEMORY


def _bind(parameters: list[nn.Parameter], model: list[Tensor]) -> None:
    for parameter, view in zip(parameters, model, strict=True):
        parameter.data = view


def _widest(flat: Flat, probe: Samples) -> int:
    """Bytes a sample of the largest output of any module."""
    sizes = [1]

    def note(module: nn.Module, received: object, output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.numel() * output.element_size() // len(probe))

    handles = [module.register_forward_hook(note) for module in flat.module.modules()]
    flat.outputs(probe.inputs)
    for handle in handles:
        handle.remove()
    return max(sizes)

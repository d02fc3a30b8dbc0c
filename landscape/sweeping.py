"""The work of a sweep: point models share blocks of samples and the first layer, chunk by chunk, thread by thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from landscape.batchnorm import recomputed
from landscape.firstlayer import FirstLayer, combine, first_layer
from landscape.flat import Flat
from landscape.kernels import quicken
from landscape.metrics import Means
from landscape.samples import Samples, leaves
from landscape.task import PerSample, Task

BLOCK_BYTES = 6 * 2**20
"""Bytes that the largest output of a block of samples may take (measured: flat optimum between 3 and 12 MiB)."""

GPU_BLOCK_BYTES = 2**28
"""The same on other devices, where a block must be large enough to fill the device (not measured)."""

CHUNK_SECONDS = 2.0
"""About how often finished points are handed out."""


@dataclass
class Work:
    """What all points of a sweep have in common."""

    task: Task
    basis: Tensor
    buffers: Tensor | None
    samples: Samples
    groups: Tensor | None
    measures: dict[str, PerSample]
    block: int | None
    calibration: Samples | None


class Worker:
    """One thread's model, and memory for the point models of a chunk, which is used again for the next."""

    def __init__(self, work: Work) -> None:
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


def finished(
    first: Worker, points: list[list[float]], parts: Iterator[slice], workers: int
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
                held.worker = next(spare, None) or Worker(first.work)
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


def chunks(count: int, least: int, most: int) -> Iterator[slice]:
    """Consecutive pieces, from `least` to `most` long, that grow until one takes CHUNK_SECONDS."""
    start, size = 0, least
    while start < count:
        begun = time.perf_counter()
        yield slice(start, min(start + size, count))
        start += size
        if time.perf_counter() - begun < CHUNK_SECONDS:
            size = min(2 * size, most)


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

"""Evaluation of chunks of points: point models share blocks of samples and the first layer."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from landscape.model.batchnorm import recompute_statistics
from landscape.model.bound_model import Flat
from landscape.model.losses import is_coupled
from landscape.model.metrics import Means
from landscape.model.samples import Samples, leaves
from landscape.model.task import PerSample, Task
from landscape.sweep.first_layer import FirstLayer, combine, first_layer, shared_start
from landscape.sweep.folded_norms import FoldedConvolution, fold_norms
from landscape.sweep.layer_forward import restore
from landscape.sweep.onednn_layers import Packed, packable_forwards, use_onednn
from landscape.sweep.pooled_first_layer import pooled_first_layer
from landscape.sweep.precision import Precision, use_bfloat16
from landscape.sweep.sweep_plan import DEFAULT, SweepPlan
from landscape.sweep.two_stage_forward import ROWS, split_stages

BLOCK_BYTES = 5 * 2**19
"""Bytes that the largest output of a block of samples may take (measured: flat optimum from 2 to 3 MiB)."""

LEAST_BLOCK = 16
"""Least samples in a block."""

GPU_BLOCK_BYTES = 2**28
"""BLOCK_BYTES of other devices, where a block must fill the device (not measured)."""

OUTPUT_BYTES = 2**15
"""Bytes of outputs per point that are collected before metrics are computed."""

Points = list[list[float]]
"""Coefficients, one row per point."""

Values = dict[str, Tensor]
"""Mean metrics at points, by name; the first axis is the point."""


@dataclass
class Work:
    """What all points of a sweep share."""

    task: Task
    basis: Tensor
    buffers: Tensor | None
    samples: Samples
    groups: Tensor | None
    measures: dict[str, PerSample]
    block: int | None
    calibration: Samples | None
    precision: Precision = "exact"
    plan: SweepPlan = DEFAULT


class Worker:
    """The model of one thread, and memory for the point models of a chunk, reused by the next chunk."""

    @torch.no_grad()  # grad mode is per thread
    def __init__(self, work: Work) -> None:
        self.work = work
        self.flat = work.task.flat(work.basis)
        self.own = self.flat.buffers.clone()
        self.flat.load(work.basis[0])
        if work.plan.contiguous:
            self.flat.habits = replace(self.flat.habits, channels_last=False)
        use_onednn(self.flat, work.samples[:2], work.plan)
        self.block, self.shared = plan(
            self.flat, work.basis, work.samples, work.block or work.plan.block, work.plan.shared
        )
        folded: list[FoldedConvolution] = []
        if work.plan.folded and work.precision == "exact":
            folded = fold_norms(self.flat, work.samples[:2], self.shared.layer if self.shared else None)
        coarse = use_bfloat16(self.flat, work.samples[:2]) if work.precision == "fast" else []
        self.coarse = [name in coarse for name, _ in self.flat.layout.parameters]
        self.stages = split_stages(self.flat, work.samples[:2])
        if self.shared is not None:
            chain = self.stages.chain
            self.shared = pooled_first_layer(self.flat, self.shared, chain, work.basis, work.samples[:2])
        self.stretch = self.block * (max(1, round(ROWS / self.block)) if self.stages.cut else 1)
        self.parameters = [self.flat.module.get_parameter(name) for name, _ in self.flat.layout.parameters]
        self.models: list[Tensor] = []
        self.packable: list[Packed | FoldedConvolution] = [*packable_forwards(self.flat), *folded]
        weakref.finalize(self, restore, self.flat.module).atexit = False
        self.take([])

    def chunk(self, points: Points) -> Values:
        """Mean metrics at a few points."""
        self.take(points)
        return mean_metrics(self.work, len(points), self.outputs(self.stretches))

    def take(self, points: Points) -> None:
        """Compute the models of a few points, which `outputs` then evaluates."""
        self.models.extend(torch.empty_like(self.work.basis[0]) for _ in range(len(points) - len(self.models)))
        thetas = [combine(self.work.basis, row, out=memory) for row, memory in zip(points, self.models, strict=False)]
        for forward in self.packable:
            forward.cache = {}
        self.views = [self._views(theta) for theta in thetas]
        self.point_buffers = [self.statistics(row, theta) for row, theta in zip(points, thetas, strict=True)]
        self.points = points
        self.order = sorted(range(len(points)), key=lambda point: shared_start(points[point]))

    @property
    def stretches(self) -> range:
        """First sample per stretch: the blocks of one pass through the last layers, or a single block."""
        return range(0, len(self.work.samples), self.stretch)

    @torch.no_grad()
    def outputs(self, stretches: range) -> Iterator[list[Tensor]]:
        """Outputs of all points, one stretch of samples after the other."""
        for start in stretches:
            end = min(start + self.stretch, len(self.work.samples))
            blocks = [self._block(begin, min(begin + self.block, end)) for begin in range(start, end, self.block)]
            wholes = [torch.cat(parts) if len(blocks) > 1 else parts[0] for parts in zip(*blocks, strict=True)]
            for point in range(len(wholes)) if self.stages.cut else ():
                _bind(self.parameters, self.views[point])
                wholes[point] = self.stages.last(wholes[point])
            yield wholes

    def _block(self, begin: int, end: int) -> list[Tensor]:
        """Inputs of the last layers, or outputs, of all points on one block while it is in the cache."""
        flat = self.flat
        inputs = flat.cast(self.work.samples[begin:end].inputs)
        received: dict[int, Tensor] = {}
        if self.shared is not None:
            self.shared.prepare(inputs)
        for point in self.order:
            _bind(self.parameters, self.views[point])
            if len(flat.buffers):
                flat.buffers.copy_(self.point_buffers[point])
            if self.shared is not None:
                self.shared.at(self.points[point])
            received[point] = self.stages.first(inputs).clone()  # may be a buffer of the shared layer
        if self.shared is not None:
            self.shared.release()
        return [received[point] for point in range(len(received))]

    def free(self) -> None:
        """Release the memory of the models of the last chunk."""
        self.models.clear()
        self.take([])

    def _views(self, theta: Tensor) -> list[Tensor]:
        """Parameters of a point; those of bfloat16 layers are rounded once for all blocks."""
        views = self.flat.layout.named(theta).values()
        return [view.bfloat16() if coarse else view for view, coarse in zip(views, self.coarse, strict=True)]

    def statistics(self, row: list[float], theta: Tensor) -> Tensor:
        """Floating buffers (b,) of a point at theta (d,)."""
        work = self.work
        mixed = self.own if work.buffers is None else combine(work.buffers.to(self.own), row)
        on_path = work.buffers is not None and sorted(row) == [0.0] * (len(row) - 1) + [1.0]
        if work.calibration is None or on_path:
            return mixed
        _bind(self.parameters, self._views(theta))
        self.flat.buffers.copy_(mixed)
        return recompute_statistics(self.flat, work.calibration)


@torch.no_grad()
def mean_metrics(work: Work, points: int, blocks: Iterable[list[Tensor]]) -> Values:
    """Mean metrics of points from their outputs on all blocks of samples in order.

    Outputs of several blocks are joined first, since each update costs some ten small operations.
    """
    groups = None if work.groups is None else int(work.groups.max()) + 1
    means = {name: Means(measure, points, groups) for name, measure in work.measures.items()}
    whole_split = any(map(is_coupled, work.measures.values()))
    waiting: list[list[Tensor]] = []
    begin = end = 0
    for outputs in blocks:
        waiting.append(outputs)
        end += len(outputs[0])
        if end < len(work.samples) and (whole_split or sum(few[0].nbytes for few in waiting) < OUTPUT_BYTES):
            continue
        targets = work.samples.targets[begin:end].to(work.basis.device)
        group = None if work.groups is None else work.groups[begin:end]
        for point in range(points):
            whole = torch.cat([few[point] for few in waiting])
            for mean in means.values():
                mean.add(point, whole, targets, group)
        waiting, begin = [], end
    return {name: mean.result() for name, mean in means.items()}


@torch.no_grad()
def plan(
    flat: Flat, basis: Tensor, samples: Samples, block: int | None = None, wanted: bool | None = None
) -> tuple[int, FirstLayer | None]:
    """Samples per forward pass, and the shared first layer or None; independent of the points."""
    flat.load(basis[0])
    probe = samples[:2]
    shared = first_layer(flat, basis, probe, wanted)
    if block is None:
        most = max([widest(flat, probe), *(leaf[0].nbytes for leaf in leaves(probe.inputs))])
        limit = BLOCK_BYTES if basis.device.type == "cpu" else GPU_BLOCK_BYTES
        block = max(LEAST_BLOCK, min(2048, limit // most))
    return block, shared


def _bind(parameters: list[nn.Parameter], model: list[Tensor]) -> None:
    for parameter, view in zip(parameters, model, strict=True):
        parameter.data = view


def widest(flat: Flat, probe: Samples) -> int:
    """Bytes per sample of the largest output of any module."""
    sizes = [1]

    def note(module: nn.Module, received: object, output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.numel() * output.element_size() // len(probe))

    handles = [module.register_forward_hook(note) for module in flat.module.modules()]
    flat.outputs(probe.inputs)
    for handle in handles:
        handle.remove()
    return max(sizes)

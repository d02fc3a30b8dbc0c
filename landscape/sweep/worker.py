"""Evaluation of chunks of points: point models share blocks of samples and the first layer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from landscape.model.batchnorm import recompute_statistics
from landscape.model.bound_model import Flat
from landscape.model.hooks import observed
from landscape.model.input_format import alike
from landscape.model.metrics import Means
from landscape.model.samples import Inputs, Samples, leaves
from landscape.model.task import PerSample, Task
from landscape.out_of_memory import is_out_of_memory
from landscape.sweep.first_layer import FirstLayer, combine, first_layer
from landscape.sweep.precision import Precision, use_bfloat16

BLOCK_BYTES = 2**23
"""Bytes that the largest output of a block of samples may take: 2 to 3 MiB took 1.4 times the time of a CNN."""

GPU_BLOCK_BYTES = 2**28
"""BLOCK_BYTES of other devices, where a block must fill the device (not measured)."""

Points = list[list[float]]
"""Coefficients, one row per point."""

Outputs = tuple[int, int, Tensor]
"""First sample of a block, point, and its outputs on the block."""

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


class Worker:
    """The model of one thread, and memory for the point models of a chunk, reused by the next chunk."""

    @torch.no_grad()  # grad mode is per thread
    def __init__(self, work: Work) -> None:
        self.work = work
        self.flat = work.task.flat(work.basis)
        self.model_buffers = self.flat.buffers.clone()
        self.flat.load(work.basis[0])
        self.block, self.shared = blocks_and_sharing(self.flat, work.basis, work.samples, work.block)
        coarse = use_bfloat16(self.flat, work.samples[:2]) if work.precision == "fast" else []
        self.checked = set[int]()
        self.coarse = [name in coarse for name, _ in self.flat.layout.parameters]
        self.parameters = [self.flat.module.get_parameter(name) for name, _ in self.flat.layout.parameters]
        try:
            _bind(self.parameters, self._views(work.basis[0]))
            if coarse:
                self.flat.outputs(work.samples[:2].inputs)
        except RuntimeError:  # a weight of such a layer has another use, in float32: the layer rounds it at each call
            self.coarse = [False] * len(self.coarse)
        self.models: list[Tensor] = []
        self.take([])

    def chunk(self, points: Points) -> Values:
        """Mean metrics at a few points."""
        self.take(points)
        return mean_metrics(self.work, len(points), self.outputs(self.blocks))

    def take(self, points: Points) -> None:
        """Compute the models of a few points, which `outputs` then evaluates."""
        self.models.extend(torch.empty_like(self.work.basis[0]) for _ in range(len(points) - len(self.models)))
        thetas = [combine(self.work.basis, row, out=memory) for row, memory in zip(points, self.models, strict=False)]
        self.views = [self._views(theta) for theta in thetas]
        self.point_buffers = [self.statistics(row, theta) for row, theta in zip(points, thetas, strict=True)]
        self.points = points
        self.order = sorted(range(len(points)), key=lambda point: points[point][2:])  # share most of `FirstLayer.at`

    @property
    def blocks(self) -> range:
        """First sample of each block."""
        return range(0, len(self.work.samples), self.block)

    @torch.no_grad()
    def outputs(self, blocks: range) -> Iterator[Outputs]:
        """Outputs of all points, one block of samples after the other."""
        flat = self.flat
        for begin in blocks:
            inputs = flat.cast(self.work.samples[begin : begin + self.block].inputs)
            try:
                for point in self.order:
                    _bind(self.parameters, self.views[point])
                    if len(flat.buffers):
                        flat.buffers.copy_(self.point_buffers[point])
                    yield begin, point, self._passed(inputs, self.points[point]).clone()  # may be a buffer of `shared`
            finally:
                if self.shared is not None:
                    self.shared.release()

    def _passed(self, inputs: Inputs, point: list[float]) -> Tensor:
        """Outputs of a point, by the shared layer where that changes none of them.

        What a forward does may depend on the number of samples, so blocks of each size are first passed both ways.
        """
        size, shared = len(leaves(inputs)[0]), self.shared
        if shared is not None and shared.cancels(point):
            shared.restore()
            return self.flat.outputs(inputs)
        if shared is not None and size in self.checked:
            shared.at(point, inputs)
        plain = self.flat.outputs(inputs)
        if shared is None or size in self.checked:
            return plain
        try:
            shared.at(point, inputs)
            outputs = self.flat.outputs(inputs)
            same = alike(outputs, plain)
        except (RuntimeError, ValueError, TypeError, LookupError) as error:
            if is_out_of_memory(error):
                raise
            same = False
        shared.restore()
        if same:
            self.checked |= {size} if bool(plain.isfinite().all()) else set()
            return outputs
        shared.release()
        self.shared = None
        return plain

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
        mixed = self.model_buffers if work.buffers is None else combine(work.buffers.to(self.model_buffers), row)
        on_path = work.buffers is not None and sorted(row) == [0.0] * (len(row) - 1) + [1.0]
        if work.calibration is None or on_path:
            return mixed
        _bind(self.parameters, self._views(theta))
        self.flat.buffers.copy_(mixed)
        return recompute_statistics(self.flat, work.calibration)


@torch.no_grad()
def mean_metrics(work: Work, points: int, passed: Iterable[Outputs]) -> Values:
    """Mean metrics of points from their outputs on all blocks of samples, each point's in order."""
    groups = None if work.groups is None else int(work.groups.max()) + 1
    means = {name: Means(measure, points, groups) for name, measure in work.measures.items()}
    targets = work.samples.targets.to(work.basis.device)
    for begin, point, outputs in passed:
        span = slice(begin, begin + len(outputs))
        for mean in means.values():
            mean.add(point, outputs, targets[span], None if work.groups is None else work.groups[span])
    return {name: mean.result() for name, mean in means.items()}


@torch.no_grad()
def blocks_and_sharing(
    flat: Flat, basis: Tensor, samples: Samples, block: int | None = None
) -> tuple[int, FirstLayer | None]:
    """Samples per forward pass, and the shared first layer or None; independent of the points."""
    flat.load(basis[0])
    probe = samples[:2]
    shared = first_layer(flat, basis, probe)
    if block is None:
        most = max([widest(flat, probe), *(leaf[0].nbytes for leaf in leaves(probe.inputs))])
        limit = BLOCK_BYTES if basis.device.type == "cpu" else GPU_BLOCK_BYTES
        block = max(16, min(2048, limit // most))
    return block, shared


def _bind(parameters: list[nn.Parameter], model: list[Tensor]) -> None:
    for parameter, view in zip(parameters, model, strict=True):
        parameter.data = view


def widest(flat: Flat, probe: Samples) -> int:
    """Bytes per sample of the largest output of any module."""
    sizes = [1]
    observed(flat.module, lambda: flat.outputs(probe.inputs), lambda name, layer, output: sizes.append(output.nbytes))
    return max(1, max(sizes) // len(probe))

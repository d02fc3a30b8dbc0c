"""Many point models per forward pass, for devices that one small model does not fill."""

import time
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.func import vmap

from landscape.model.bound_model import outputs_with
from landscape.model.input_format import alike
from landscape.model.losses import is_coupled
from landscape.model.metrics import Means
from landscape.model.samples import Inputs, map_leaves
from landscape.sweep.first_layer import combine
from landscape.sweep.threads import Evaluator, at_points
from landscape.sweep.worker import Points, Values, Worker, widest

DEVICES = ("cuda",)
"""Types of devices on which points are batched; a CPU is faster with one model in its cache."""

LIVE = 6
"""Outputs of the largest layer in memory at a time: input, output, padded and unfolded copies."""

SAMPLES = (64, 2048)
"""Least and most samples per pass."""

MOST = 64
"""Most points per pass: more are slower, those of convolutions beyond 16 already (`benchmarks.gpu` on an H100)."""

COLUMNS = 2**22
"""Parameters that are combined at once, in float64."""

TRIED = {"many": 16, "single": 2}
"""Points by which the two ways are timed, each after as many that warm it up."""


class PointBatch:
    """Evaluates a chunk of points with `vmap` over their parameters and buffers.

    The first layer becomes one layer with the outputs of all points, the layers behind it grouped convolutions and
    batched matrix products. Values equal those of `Worker` up to rounding, which may depend on the size of a chunk.

    Args:
        worker: Computes the statistics of batch normalisation.
        memory: Bytes for point models and activations.
    """

    def __init__(self, worker: Worker, memory: int) -> None:
        self.work = worker.work
        self.flat = self.work.task.flat(self.work.basis)
        self.memory = memory
        self._worker = worker
        self.sample_bytes = LIVE * widest(self.flat, self.work.samples[:2])
        self.point_bytes = 2 * self.work.basis.shape[1] * self.work.basis.element_size()
        self._finite = bool(self.work.basis.isfinite().all())

    @property
    def most(self) -> int:
        """Points per chunk for which the memory also fits the activations of SAMPLES[0] samples each."""
        return max(1, min(MOST, self.memory // (self.point_bytes + SAMPLES[0] * self.sample_bytes)))

    def block(self, points: int) -> int:
        """Samples per pass of so many points."""
        left = self.memory - points * self.point_bytes
        return self.work.block or max(1, min(SAMPLES[1], left // (points * self.sample_bytes)))

    def free(self) -> None:
        """Release cached memory of the allocator of the device."""
        if self.flat.theta.device.type == "cuda":
            torch.cuda.empty_cache()

    def chunk(self, points: Points) -> Values:
        """Mean metrics at a few points."""
        work, block = self.work, self.block(len(points))
        state = self._state(points)
        groups = None if work.groups is None else int(work.groups.max()) + 1
        means = {name: Means(measure, len(points), groups) for name, measure in work.measures.items()}
        for start in range(0, len(work.samples), block):
            batch = work.samples[start : start + block]
            outputs = self.outputs(state, batch.inputs)
            group = None if work.groups is None else work.groups[start : start + block]
            for mean in means.values():
                mean.add_all(outputs, batch.targets.to(outputs.device), group)
        return {name: mean.result() for name, mean in means.items()}

    def outputs(self, state: dict[str, Tensor], inputs: Inputs) -> Tensor:
        """Outputs (P, n, ...) of P models, whose tensors by name have a first axis of points."""

        def at(tensors: dict[str, Tensor]) -> Tensor:
            return outputs_with(self.flat.module, tensors, inputs)

        inputs = map_leaves(lambda leaf: leaf.contiguous(), self.flat.cast(inputs))  # vmap is slow on channels-last
        return vmap(at)(state)

    def _state(self, points: Points) -> dict[str, Tensor]:
        layout, thetas = self.flat.layout, self._models(points)
        state = vmap(layout.named)(thetas)
        if layout.buffer_size:
            buffers = [self._worker.statistics(*pair) for pair in zip(points, thetas, strict=True)]
            state |= vmap(layout.named_buffers)(torch.stack(buffers))
        return state

    def _models(self, points: Points) -> Tensor:
        """Models (P, d) by one product in float64, whose rounding is below that of the models; a corner keeps its bits.

        A model with infinite or NaN entries must not reach points where its coefficient is 0.
        """
        basis = self.work.basis
        if len(points) == 1 or not self._finite:
            return torch.stack([combine(basis, row) for row in points])
        rows = torch.tensor(points, dtype=torch.float64, device=basis.device)
        return torch.cat([(rows @ some.double()).to(basis) for some in basis.split(COLUMNS, 1)], 1)


def evaluate_faster(worker: Worker, many: PointBatch, points: Points) -> Iterator[tuple[slice, Values]]:
    """(points, values) per chunk, in order, by the faster of the two ways; they are timed on the first points."""
    ways: dict[str, Evaluator] = {"many": many, "single": worker}
    seconds: dict[str, float] = {}
    done = 0
    for _ in ("warm", "timed"):
        for name, way in ways.items():
            span = slice(done, min(done + min(TRIED[name], many.most), len(points)))
            if span.start == span.stop:
                return
            begun = time.perf_counter()
            values = at_points(way, points[span])
            seconds[name] = (time.perf_counter() - begun) / (span.stop - span.start)
            done = span.stop
            yield span, values
    way = ways[min(seconds, key=lambda name: seconds[name])]
    for start in range(done, len(points), many.most):
        span = slice(start, min(start + many.most, len(points)))
        yield span, at_points(way, points[span])


@torch.no_grad()
def batch_points(worker: Worker, memory: int) -> PointBatch | None:
    """A batch for the sweep of a worker; None if `vmap` lacks an operation, outputs differ, or a loss is coupled."""
    points_batch, work = PointBatch(worker, memory), worker.work
    if any(map(is_coupled, work.measures.values())):
        return None
    rows = [[1.0, *[0.0] * (len(work.basis) - 1)]] * 2
    inputs = work.samples[:2].inputs
    try:
        both = points_batch.outputs(points_batch._state(rows), inputs)
    except RuntimeError:  # vmap or functional_call does not support an operation
        return None
    points_batch.flat.load(work.basis[0], worker.statistics(rows[0], work.basis[0]))
    return points_batch if alike(both[1], points_batch.flat.outputs(inputs)) else None

"""The gradient of a training step as a recorded CUDA graph: for small models on a GPU, limited by kernel launches.

Tested on a CPU, where a stand-in repeats the work in place of the graph; `benchmarks.gpu` compares it on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from landscape.batched_training.per_model_gradients import SHARED
from landscape.model.bound_model import Flat
from landscape.model.input_format import alike
from landscape.model.samples import Samples, leaves, map_leaves

GraphRecorder = Callable[[Callable[[], Tensor]], tuple[Callable[[], None], Tensor]]
"""(work) -> (replay, output): `replay()` repeats the work on the same memory and writes its result to `output`."""

_REPLAYS: WeakKeyDictionary[Flat, ReplayedGradient] = WeakKeyDictionary()

WARM = 3
"""Eager runs before recording, as torch's documentation asks for."""


def step_gradient(flat: Flat) -> Callable[[Flat, Samples], Tensor]:
    """The fastest `Flat.gradient` of a workspace: a replayed recording on a GPU, else the method itself."""
    if flat.theta.device.type != "cuda":
        return Flat.gradient
    if flat not in _REPLAYS:
        _REPLAYS[flat] = ReplayedGradient(flat)
    return _REPLAYS[flat].gradient


class ReplayedGradient:
    """`Flat.gradient` by replay, one recording per shape of a minibatch.

    Inputs are copied to fixed memory before each replay; theta and grad lie fixed in the workspace. The first replay
    of a shape is compared with the eager gradient. If recording fails or the two differ beyond rounding, and in
    models with dropout or batch statistics, whose state a recording would freeze or update twice, all gradients are
    eager; `reason` is the cause.

    Args:
        flat: The workspace; its theta must be loaded, never replaced.
        record: Records a replay; by default a CUDA graph.
    """

    def __init__(self, flat: Flat, record: GraphRecorder | None = None) -> None:
        self.flat = flat
        self.record = record or cuda_graph
        shared = sorted({type(layer).__name__ for layer in flat.module.modules() if isinstance(layer, SHARED)})
        self.reason = f"{', '.join(shared)} would be replayed with frozen state" if shared else ""
        self._recorded: dict[tuple, tuple[Samples, Callable[[], None], Tensor]] = {}

    def gradient(self, flat: Flat, batch: Samples) -> Tensor:
        """Mean loss () of the minibatch; writes its gradient into `flat.grad`. `flat` must be the workspace."""
        if flat is not self.flat:
            raise ValueError("this recording belongs to another workspace; make one for each.")
        if self.reason:
            return flat.gradient(batch)
        shape = tuple((tuple(leaf.shape), leaf.dtype) for leaf in (*leaves(batch.inputs), batch.targets))
        if shape not in self._recorded and not self._begin(shape, batch):
            return flat.gradient(batch)
        fixed, replay, loss = self._recorded[shape]
        for place, leaf in zip(
            (*leaves(fixed.inputs), fixed.targets), (*leaves(batch.inputs), batch.targets), strict=True
        ):
            place.copy_(leaf)
        replay()
        return loss.clone()

    def _begin(self, shape: tuple, batch: Samples) -> bool:
        """Record a shape and compare with eager; returns whether replays can be used."""
        own = partial(torch.Tensor.to, device=self.flat.theta.device, copy=True)
        expected = self.flat.gradient(batch).clone(), self.flat.grad.clone()
        fixed = Samples(map_leaves(own, batch.inputs), own(batch.targets))
        try:
            replay, loss = self.record(lambda: self.flat.gradient(fixed))
        except RuntimeError as reason:  # an operation that a graph cannot record
            self.reason = f"the step cannot be recorded ({str(reason).splitlines()[0]})"
            return False
        replay()
        if not all(map(alike, (loss, self.flat.grad), expected)):
            self.reason = "a replayed gradient differs from the eager one"
            return False
        self._recorded[shape] = fixed, replay, loss
        return True


def cuda_graph(work: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
    """A replay of `work` by a CUDA graph, recorded after a few eager runs on a separate stream."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = work()
    return graph.replay, output

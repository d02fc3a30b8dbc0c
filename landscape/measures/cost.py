"""Cost of a computation (multiply-accumulates, seconds, memory) and bytes of a model."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from landscape.model.samples import tensors_in
from landscape.model.task import Split, Task
from landscape.model.vectors import takes_models
from landscape.probe import probed
from landscape.results.labelled import labelled

REPEATS = 5
"""Repetitions: the range of five contains the median of all with probability 94 %, whatever their distribution."""


@dataclass(frozen=True)
class Cost:
    """Cost of an action: multiply-accumulates, largest bytes of its tensors at one time, and seconds.

    seconds is the median of the measured runs, low and high are the fastest and the slowest; NaN with a single one.
    """

    macs: float
    memory: float
    seconds: float
    low: float
    high: float


def measure_cost(action: Callable[[], object], *, repeats: int = REPEATS) -> Cost:
    """Cost of what `action` computes with torch; the action runs twice to count and `repeats` times to measure.

    Multiply-accumulates are those of matrix products, convolutions, attention and recurrent layers, forward and
    backward, counted from shapes in a run without fused operations; others, such as a matrix times a vector, are left
    out. Products of three factors (bilinear) are not known: NaN. Memory counts
    tensors that the action creates, not caches of the allocator; it is NaN where torch does not show them.
    """
    mkldnn, mha = cast(Any, torch.backends.mkldnn), torch.backends.mha
    with sdpa_kernel(SDPBackend.MATH), _watched() as memory:
        action()
    before = mkldnn.enabled, mha.get_fastpath_enabled()
    try:
        mkldnn.enabled = False
        mha.set_fastpath_enabled(False)
        with sdpa_kernel(SDPBackend.MATH), _watched() as counter:
            action()
    finally:
        mkldnn.enabled = before[0]
        mha.set_fastpath_enabled(before[1])
    median, low, high = median_and_range(measure_seconds(action, repeats=repeats)[:, 0])
    return Cost(counter.get_total_flops() // 2, getattr(memory, "largest", nan), median, low, high)


def measure_seconds(*actions: Callable[[], object], repeats: int = REPEATS) -> np.ndarray:
    """Seconds of every action, shape (repeats, actions), including their work on a GPU.

    Actions run in turn, every second time in reverse order, so that other load of the machine affects all equally.
    """
    seconds = np.zeros((repeats, len(actions)))
    for row in range(repeats):
        for column in range(len(actions))[:: -1 if row % 2 else 1]:
            seconds[row, column] = _measure_once(actions[column])
    return seconds


def median_and_range(values: np.ndarray) -> tuple[float, float, float]:
    """Median, least and largest of some values; NaN for the latter where there is a single value."""
    return float(np.median(values)), *((float(values.min()), float(values.max())) if len(values) > 1 else (nan, nan))


@takes_models("theta")
def step_cost(
    task: Task,
    theta: Tensor,
    *,
    batch: int = 50,
    split: Split = "train",
    repeats: int = REPEATS,
    buffers: Tensor | None = None,
) -> xr.Dataset:
    """Cost of one model: a forward pass of a sample, a training step of a batch, a transfer.

    Source: LSS paper, Table 5 (1.82 G multiply-accumulates for ResNet-18 at 224 x 224, forward); papers.md 3.5.

    Args:
        task: Model, loss and samples.
        split: Samples that the numbers are averaged over.
        theta: Model, shape (d,).
        batch: Samples in a step; fewer where the split has fewer.
        repeats: Steps measured; the result is their median.
        buffers: Floating buffers (b,); by default the model's own.

    Returns:
        Dataset with macs (), of one forward pass of one sample, NaN with bilinear layers; forward (), step () in
        seconds per batch, step being forward and backward, with the fastest and the slowest run as NAME_low and
        NAME_high; memory (), bytes of a step with theta and its gradient; transfer (), bytes of parameters and buffers.

    Raises:
        ValueError: If the split is empty.
    """
    samples = task.split(split)[:batch]
    if len(samples) == 0:
        raise ValueError("the split has no samples; a step needs at least one.")
    flat = task.flat(theta)
    flat.load(theta, buffers)

    def forward() -> None:
        with torch.no_grad():
            flat.outputs(samples.inputs)

    actions = forward, lambda: flat.gradient(samples)
    passed, stepped = (measure_cost(action, repeats=repeats) for action in actions)
    workspace = flat.theta.nbytes + flat.grad.nbytes + flat.buffers.nbytes
    variables = {
        "macs": (passed.macs / len(samples), "multiply-accumulates of a forward pass", "MAC"),
        "forward": (passed.seconds, "time of a forward pass", "s"),
        "forward_low": (passed.low, "time of the fastest forward pass", "s"),
        "forward_high": (passed.high, "time of the slowest forward pass", "s"),
        "step": (stepped.seconds, "time of forward and backward", "s"),
        "step_low": (stepped.low, "time of the fastest forward and backward", "s"),
        "step_high": (stepped.high, "time of the slowest forward and backward", "s"),
        "memory": (stepped.memory + workspace, "memory of a step", "bytes"),
        "transfer": (transfer_bytes(task, theta), "bytes of a model", "bytes"),
    }
    scalars = {name: ((), float(value), text, unit) for name, (value, text, unit) in variables.items()}
    return labelled(scalars, {"analysis": "step_cost", "source": "LSS paper, Table 5", "batch": len(samples)})


def transfer_bytes(task: Task, theta: Tensor) -> int:
    """Bytes of parameters and floating buffers, uncompressed, in the dtype of theta."""
    return (task.layout.size + task.layout.buffer_size) * theta.element_size()


def _measures(watch: Callable[[], Any]) -> bool:
    with watch() as counter:
        torch.ones(10, 100, dtype=torch.float64).add(1).mm(torch.ones(100, 1, dtype=torch.float64)).sum().item()
    return counter.largest == 8000 + 8000 and counter.get_total_flops() == 2 * 1000


def _as_torch_counts() -> dict[Any, Callable[..., float]]:
    return {}


@probed(_as_torch_counts, lambda formulas: len(formulas()) == 2)
def _formulas() -> dict[Any, Callable[..., float]]:
    """Operations of which torch's own formula is wrong or missing: gradients of convolutions in groups, of which each
    takes as many operations as the convolution, and products of three factors, which are not known.
    """

    def backward(grad: Any, inputs: Any, weight: Any, *settings: Any, **_: Any) -> int:
        return conv_flop_count(inputs, weight, grad, transposed=settings[4]) * sum(map(int, settings[7][:2]))

    return {torch.ops.aten.convolution_backward: backward, torch.ops.aten._trilinear: lambda *_, **__: nan}


def _counting() -> FlopCounterMode:
    return FlopCounterMode(display=False, custom_mapping=_formulas())


@probed(_counting, _measures)
def _watched() -> Any:
    """A `FlopCounterMode` that loads no compiler, with `largest`: the largest bytes at one time of new storages."""
    from torch.utils._python_dispatch import TorchDispatchMode

    alive = set[int]()  # of the one object of this class
    formulas = _counting().flop_registry

    class Watched(TorchDispatchMode):
        now = largest = flops = 0

        def _dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            options, count = kwargs or {}, formulas.get(func.overloadpacket)
            if count is None and func is not torch.ops.prim.device.default:
                with self:  # in inference mode an operation may consist of others
                    if (results := func.decompose(*args, **options)) is not NotImplemented:
                        return results
            results = func(*args, **options)
            self.flops += 0 if count is None else count(*args, **options, out_val=results)
            inputs = {tensor.untyped_storage().data_ptr() for tensor in tensors_in((args, kwargs))}
            for tensor in tensors_in(results):
                if tensor.untyped_storage().data_ptr() not in inputs | alive:
                    self._note(tensor.untyped_storage())
            return results

        def get_total_flops(self) -> int:
            return self.flops

        def _note(self, storage: torch.UntypedStorage) -> None:
            alive.add(storage.data_ptr())
            self.now += storage.nbytes()
            self.largest = max(self.largest, self.now)
            weakref.finalize(storage, self._gone, storage.data_ptr(), storage.nbytes())

        def _gone(self, key: int, size: int) -> None:
            alive.discard(key)
            self.now -= size

    # not in the class, which would load torch's compiler
    Watched.__torch_dispatch__ = Watched._dispatch  # type: ignore[method-assign,assignment] # torch passes the object
    return Watched()


def _measure_once(action: Callable[[], object]) -> float:
    _settle()
    begun = time.perf_counter()
    action()
    _settle()
    return time.perf_counter() - begun


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()

"""The loss at affine combinations of a few models: the one evaluator of every line, plane and simplex."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from landscape.firstlayer import FirstLayer, combine, first_layer
from landscape.flat import Flat
from landscape.samples import Samples, leaves
from landscape.task import Split, Task

MEMORY = 512 * 2**20
"""Bytes of point models held at once."""

BLOCK_BYTES = 6 * 2**20
"""Bytes that the largest output of a block of samples may take (measured: flat optimum between 3 and 12 MiB)."""

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
    metrics: tuple[str, ...] = ("loss", "error"),
    buffers: Tensor | None = None,
    block: int | None = None,
    memory: int = MEMORY,
    on_points: OnPoints | None = None,
) -> dict[str, Tensor]:
    """Mean metrics over a split at the models coefficients @ basis, in eval mode and without gradients.

    A point's value has the same bits whichever other points are asked for, and in whatever chunks.

    Args:
        basis: Models or directions, shape (n, d).
        coefficients: One row a point, shape (P, n).
        metrics: "loss" and names of the task's metrics.
        buffers: Floating buffers of the basis, shape (n, b), combined alike; the task's own where not given.
        block: Samples in one forward pass; chosen from the size of the activations where not given.
        memory: Bytes of point models held at once.
        on_points: Called with (points, their values) as points are finished, about every two seconds.

    Returns:
        For each metric values (P,) in float64 on the CPU; the loss is in the task's unit (nats for cross-entropy).

    Raises:
        ValueError: If shapes do not match, a metric or split is unknown, or the split is empty.
    """
    samples, measures = task.split(split), task.measures(metrics)
    points = torch.as_tensor(coefficients, dtype=torch.float64).tolist()
    basis = basis.detach()
    _check(task, basis, torch.as_tensor(coefficients), buffers, samples)
    flat = task.flat(basis)
    block, shared = plan(flat, basis, samples, block)
    most = max(1, memory // ((basis.shape[1] + 1) * basis.element_size()))
    least = most if on_points is None else min(most, 4 * len(basis) if shared else 1)
    values = {name: torch.empty(len(points), dtype=torch.float64) for name in metrics}
    for part in _chunks(len(points), least, most):
        found = _chunk(flat, basis, points[part], buffers, samples, measures, block, shared)
        for name in metrics:
            values[name][part] = found[name]
        if on_points is not None:
            on_points(part, found)
    return values


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
        block = max(16, min(2048, BLOCK_BYTES // max(widest, shared.held if shared else 0)))
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


def _chunk(
    flat: Flat,
    basis: Tensor,
    points: list[list[float]],
    buffers: Tensor | None,
    samples: Samples,
    measures: dict[str, Any],
    block: int,
    shared: FirstLayer | None,
) -> dict[str, Tensor]:
    """Mean metrics at a few points; each block of samples meets all of them while it is in the cache."""
    parameters = [flat.module.get_parameter(name) for name, _ in flat.layout.parameters]
    models = [list(flat.layout.named(combine(basis, row)).values()) for row in points]
    statistics = None if buffers is None else [combine(buffers.to(flat.theta), row) for row in points]
    sums = {name: torch.zeros(len(points), dtype=torch.float64, device=basis.device) for name in measures}
    for part in samples.blocks(block):
        inputs, targets = flat.cast(part.inputs), part.targets.to(basis.device)
        if shared is not None:
            shared.prepare(inputs)
        for point, model in enumerate(models):
            _bind(parameters, model)
            if statistics is not None:
                flat.buffers.copy_(statistics[point])
            if shared is not None:
                shared.at(points[point])
            outputs = flat.outputs(inputs)
            for name, measure in measures.items():
                sums[name][point] += measure(outputs, targets).sum(dtype=torch.float64)
        if shared is not None:
            shared.release()
    return {name: (total / len(samples)).cpu() for name, total in sums.items()}


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

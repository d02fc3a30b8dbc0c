"""Running statistics of batch normalisation: switched to those of the batch, or recomputed for a model.

The statistics of an average of models are not the average of their statistics; between trained models they are
recomputed at every point (IMA paper, section 3.2 and papers.md 3).
"""

from collections.abc import Collection
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.families import BATCH_NORMS
from landscape.model.samples import Samples
from landscape.model.task import Split, Task
from landscape.results.stated import state

Statistics = Literal["recomputed", "averaged", "task"]

CALIBRATION = 512
"""Default number of samples that statistics are computed on."""


def normalisers(module: nn.Module) -> list[nn.BatchNorm2d]:
    """The batch-normalisation layers of a module, of any dimension, that keep running statistics."""
    layers = [cast(nn.BatchNorm2d, layer) for layer in module.modules() if isinstance(layer, BATCH_NORMS)]
    return [layer for layer in layers if layer.track_running_stats]


def use_batches(flat: Flat, on: bool) -> None:
    """Normalise by the statistics of each batch (`on`) or by the running ones; dropout is not affected."""
    for layer in normalisers(flat.module):
        layer.train(on)


def recompute_statistics(flat: Flat, samples: Samples, *, block: int = 512) -> Tensor:
    """Floating buffers (b,) of the model in `flat` with the running statistics of `samples`.

    Statistics are the plain mean over blocks of about equal size.
    """
    layers = normalisers(flat.module)
    if len(samples) < 2 or not layers:
        return flat.buffers.clone()
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a plain mean instead of an exponential one
    use_batches(flat, True)
    with torch.no_grad():
        count = -(-len(samples) // block)
        for rows in torch.arange(len(samples), device=samples.targets.device).tensor_split(count):
            flat.outputs(samples[rows].inputs)
    use_batches(flat, False)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    return flat.buffers.clone()


def recalibrate(task: Task, theta: Tensor, buffers: Tensor | None, samples: Samples) -> Tensor:
    """Floating buffers (b,) of the model theta (d,) with the running statistics of `samples`.

    Other buffers are copied from `buffers`, by default from the task.
    """
    state({"statistics": "recomputed", "calibration": len(samples)} if task.layout.buffers else {})
    flat = task.flat(theta)
    flat.load(theta.detach(), buffers)
    return recompute_statistics(flat, samples)


def recalibrate_rows(task: Task, basis: Tensor, buffers: Tensor, rows: Collection[int], samples: Samples) -> Tensor:
    """Floating buffers (n, b) of a basis (n, d), with statistics of `samples` in the given `rows`."""
    result = buffers.clone()
    for row in rows:
        result[row] = recalibrate(task, basis[row], buffers[row], samples)
    return result


def usual_statistics(task: Task) -> Statistics | None:
    """Default statistics of models between trained ones: recomputed, or None for models without running statistics."""
    return "recomputed" if normalisers(task.model) else None


def resolve_statistics(task: Task, statistics: Statistics | None, buffers: Tensor | None) -> Statistics:
    """Statistics of points: the argument, by default "averaged" with buffers and "task" without.

    Raises:
        ValueError: If the name is unknown, or "averaged" comes without the buffers that the model has.
    """
    if statistics is None:
        return "task" if buffers is None else "averaged"
    if statistics not in get_args(Statistics):
        raise ValueError(f"statistics is {statistics!r}; accepted: {', '.join(get_args(Statistics))}.")
    if statistics == "averaged" and buffers is None and task.layout.buffers:
        raise ValueError("statistics = 'averaged' needs the buffers (n, b) of the basis; give them or recompute.")
    return statistics


def calibration_of(task: Task, split: Split, calibration: Samples | int = CALIBRATION) -> Samples:
    """Samples for batch statistics: the argument, or so many samples of train (without that split, of `split`)."""
    return calibration_samples(task.samples.get("train", task.split(split)), calibration)


def calibration_samples(pool: Samples, calibration: Samples | int) -> Samples:
    """Samples as they are, or a fixed random selection of so many samples of `pool` (at most all).

    Raises:
        ValueError: If there are fewer than two samples: one sample has no variance.
    """
    if isinstance(calibration, int):
        order = torch.randperm(len(pool), generator=torch.Generator().manual_seed(0))[: max(calibration, 0)]
        calibration = pool[order.sort().values.to(pool.targets.device)]
    if len(calibration) < 2:
        raise ValueError(f"batch statistics are to be computed on {len(calibration)} samples; give two or more.")
    return calibration

"""Running statistics of batch normalisation: use those of the batch, or compute them anew for a model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from landscape.flat import Flat
from landscape.samples import Samples


def normalisers(module: nn.Module) -> list[_BatchNorm]:
    """The batch-normalisation layers of a module that keep running statistics."""
    return [layer for layer in module.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]


def use_batches(flat: Flat, on: bool) -> None:
    """Normalise by the statistics of each batch, or by the running ones; dropout stays as it is."""
    for layer in normalisers(flat.module):
        layer.train(on)


def recomputed(flat: Flat, samples: Samples, *, block: int = 512) -> Tensor:
    """Floating buffers (b,) of the model in `flat` with the running statistics of `samples`.

    Statistics are the plain mean over blocks of about equal size, so that each block counts the same.
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
        for part in torch.arange(len(samples), device=samples.targets.device).tensor_split(count):
            flat.outputs(samples[part].inputs)
    use_batches(flat, False)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    return flat.buffers.clone()

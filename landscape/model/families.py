"""Classes of layers of one kind, those of users too."""

from torch import nn


def family(*layers: type[nn.Module]) -> tuple[type[nn.Module], ...]:
    """The classes, and their nearest common ancestor where that is no general one: users derive layers from it."""
    nearest = next(ancestor for ancestor in layers[0].__mro__ if all(issubclass(layer, ancestor) for layer in layers))
    return layers if issubclass(nn.Module, nearest) else (*layers, nearest)


BATCH_NORMS = family(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)

NORMS = (*BATCH_NORMS, *family(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d))
"""Layers that can keep running statistics."""

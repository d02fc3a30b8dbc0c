"""Batch normalisation of sweeps as part of the convolution before it: no pass over the images of its own.

In eval mode a normalisation is y = s (x - mean) + beta with s = gamma / sqrt(variance + eps) per channel. Behind a
convolution with weight W and bias b that is a convolution with s W and s (b - mean) + beta, computed once per point.
"""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.sweep.layer_calls import Call, trace_calls
from landscape.sweep.layer_forward import replace_forward, replacement
from landscape.sweep.onednn_layers import close_outputs, convolution_places


@torch.no_grad()
def fold_norms(flat: Flat, probe: Samples, without: nn.Module | None = None) -> list[str]:
    """Fold the normalisations that follow a convolution directly, for good; returns their names.

    Nothing changes on other devices or dtypes, in layers with hooks, in training, or if outputs on `probe` differ
    beyond rounding.

    Args:
        without: A convolution that is not changed, such as one that the points of a sweep share.
    """
    if flat.theta.device.type != "cpu" or flat.theta.dtype != torch.float32 or not flat.habits.channels_last:
        return []
    plain, seen = flat.outputs(probe.inputs), trace_calls(flat, probe.inputs)
    if (
        not seen.once
        or not bool(torch.isfinite(plain).all())
        or not hasattr(torch.ops.mkldnn, "_convolution_pointwise")
    ):
        return []
    pairs = [
        (after.name, before.layer, after.layer)
        for before, after in pairwise(seen.calls)
        if after.inputs[0] is before.output and _is_foldable(before, after) and before.layer is not without
    ]
    earlier = [(replacement(convolution), replacement(norm)) for _, convolution, norm in pairs]
    for _, convolution, norm in pairs:
        replace_forward(convolution, FoldedConvolution(convolution, norm))
        replace_forward(norm, _FoldedNorm(norm))
    if not close_outputs(flat.outputs(probe.inputs), plain):
        for (_, convolution, norm), forwards in zip(pairs, earlier, strict=True):
            replace_forward(convolution, forwards[0])
            replace_forward(norm, forwards[1])
        return []
    return [name for name, _, _ in pairs]


def folded_forwards(flat: Flat) -> list[FoldedConvolution]:
    """The forwards of a model after `fold_norms` that cache weights."""
    forwards = [replacement(layer) for layer in flat.module.modules()]
    return [forward for forward in forwards if isinstance(forward, FoldedConvolution)]


class FoldedConvolution:
    """The forward of a convolution and of the normalisation behind it.

    Attributes:
        cache: Packed weight and bias by the address of the plain weight. The owner clears it when values change.
    """

    def __init__(self, convolution: nn.Module, norm: nn.Module) -> None:
        self.convolution, self.norm = cast(nn.Conv2d, convolution), cast(nn.BatchNorm2d, norm)
        self.where = convolution_places(self.convolution)
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, inputs: Tensor) -> Tensor:
        layer = self.convolution
        if self.norm.training or inputs.ndim != 4:
            return layer._conv_forward(inputs, layer.weight, layer.bias)
        address = layer.weight.data_ptr()
        if address not in self.cache:
            self.cache[address] = self._fold(inputs)
        weight, bias = self.cache[address]
        return torch.ops.mkldnn._convolution_pointwise(inputs, weight, bias, *self.where, "none", [], "")

    def _fold(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        norm, layer = self.norm, self.convolution
        mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
        scale = (variance + norm.eps).rsqrt()
        scale = scale if norm.weight is None else scale * norm.weight
        shift = -mean if layer.bias is None else layer.bias - mean
        bias = shift * scale if norm.bias is None else torch.addcmul(norm.bias, shift, scale)
        weight = layer.weight * scale[:, None, None, None]
        if hasattr(torch.ops.mkldnn, "_reorder_convolution_weight"):
            weight = torch.ops.mkldnn._reorder_convolution_weight(weight, *self.where, list(inputs.shape))
        return weight, bias


class _FoldedNorm:
    """The forward of a normalisation that is part of the convolution before it; in training its own."""

    def __init__(self, norm: nn.Module) -> None:
        self.norm = cast(nn.BatchNorm2d, norm)

    def __call__(self, inputs: Tensor) -> Tensor:
        return type(self.norm).forward(self.norm, inputs) if self.norm.training else inputs


def _is_foldable(before: Call, after: Call) -> bool:
    convolution, norm = before.layer, after.layer
    if type(convolution) is not nn.Conv2d or type(norm) is not nn.BatchNorm2d or before.hooked or after.hooked:
        return False
    plain = convolution.padding_mode == "zeros" and not isinstance(convolution.padding, str)
    return plain and norm.running_mean is not None and norm.running_var is not None

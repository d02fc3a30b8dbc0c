"""Faster forward passes of standard layers in sweeps: exact float32 on a CPU, without gradients.

A private copy of a model gets other implementations of the same functions that measured faster: oneDNN for
dense layers and convolutions (a matrix library may miss a CPU's widest registers; torch's own choice of layout may
miss oneDNN's fast path for few channels), the 2 x 2 max-pool as two maxima of whole rows, and ReLU in place.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.hooks import hooked
from landscape.model.samples import Samples
from landscape.probe import close_outputs
from landscape.sweep.layer_forward import replace_forward, replacement
from landscape.sweep.onednn_calls import Packs, convolution, convolution_places, dense
from landscape.sweep.sweep_plan import DEFAULT, SweepPlan

Forward = Callable[[Tensor], Tensor]

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

LEAST_WEIGHTS = 8192
"""A dense layer below this size gains nothing (measured: 128 x 10 loses, 384 x 128 gains)."""


def use_onednn(flat: Flat, probe: Samples, plan: SweepPlan = DEFAULT) -> list[str]:
    """Replace forwards of plain layers of `flat` for good, and return their names; it must not be trained afterwards.

    The plan says whether dense layers and convolutions are among them (`matrices`), and which dense layers.

    Nothing is replaced on other devices or dtypes, in layers with hooks, or if outputs on the `probe` are not finite or
    differ beyond rounding. Convolutions are not replaced if images must be contiguous.
    """
    if flat.theta.device.type != "cpu" or flat.theta.dtype != torch.float32 or not torch.backends.mkldnn.is_available():
        return []
    plain = flat.outputs(probe.inputs)
    if not bool(torch.isfinite(plain).all()):
        return []  # cannot be compared
    images = flat.habits.channels_last  # oneDNN may return channels-last images
    excluded: tuple[type, ...] = () if plan.matrices == "onednn" else (nn.Linear, nn.Conv2d)
    excluded += () if images else (nn.Conv2d,)
    layers = [item for item in flat.module.named_modules() if not isinstance(item[1], excluded)]
    done = [(name, layer) for name, layer in layers if _replace(layer, _every_dense if plan.every_dense else None)]
    done += [(name, layer) for name, layer in _behind_fresh(flat.module) if _replace(layer, lambda _: torch.relu_)]
    if not close_outputs(flat.outputs(probe.inputs), plain):
        for _, layer in done:
            replace_forward(layer, None)
        return []
    return [name for name, _ in done]


def _replace(layer: nn.Module, make: Callable[..., Forward | None] | None = None) -> bool:
    if replacement(layer) is not None or hooked(layer):
        return False
    forward = None if make is None else make(layer)
    forward = _FORWARDS.get(type(layer), lambda _: None)(layer) if forward is None else forward
    if forward is not None:
        replace_forward(layer, forward)
    return forward is not None


class Packed(Generic[Layer]):
    """A forward by oneDNN that can cache weights in the order of oneDNN instead of reordering them in each call.

    Attributes:
        cache: Reordered weights; None: no caching. The owner clears it when values change.
    """

    def __init__(self, layer: Layer) -> None:
        self.layer: Layer = layer
        self.cache: Packs | None = None


class _Dense(Packed[nn.Linear]):
    def __init__(self, layer: nn.Linear, *, sequences: bool = False) -> None:
        super().__init__(layer)
        self.sequences = sequences

    def __call__(self, inputs: Tensor) -> Tensor:
        layer = self.layer
        if inputs.ndim != 2 and not (self.sequences and inputs.ndim > 2):
            return F.linear(inputs, layer.weight, layer.bias)
        return dense(inputs, layer.weight, layer.bias, self.cache)


class _Convolution(Packed[nn.Conv2d]):
    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__(layer)
        self.where = convolution_places(layer)

    def __call__(self, inputs: Tensor) -> Tensor:
        layer = self.layer
        if inputs.ndim != 4:
            return F.conv2d(inputs, layer.weight, layer.bias, layer.stride, layer.padding, layer.dilation, layer.groups)
        return convolution(inputs, layer.weight, layer.bias, self.where, self.cache)


def packable_forwards(flat: Flat) -> list[Packed]:
    """The forwards of a model after `use_onednn` that can cache reordered weights."""
    forwards: list[object] = [replacement(layer) for layer in flat.module.modules()]
    return [forward for forward in forwards if isinstance(forward, Packed)]


def _linear(layer: nn.Linear) -> Forward | None:
    return None if layer.weight.numel() < LEAST_WEIGHTS else _Dense(layer)


def _every_dense(layer: nn.Module) -> Forward | None:
    return _Dense(layer, sequences=True) if type(layer) is nn.Linear else None


def _convolution(layer: nn.Conv2d) -> Forward | None:
    plain = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return _Convolution(layer) if plain else None


def _max_pool(layer: nn.MaxPool2d) -> Forward | None:
    """Maxima are exact in any order and propagate NaN, so the bits equal those of the pool of torch."""
    if not is_halving_pool(layer):
        return None

    def forward(inputs: Tensor) -> Tensor:
        if inputs.ndim != 4 or not inputs.is_contiguous(memory_format=torch.channels_last):
            return F.max_pool2d(inputs, 2)
        n, channels, height, width = inputs.shape
        rows = inputs.permute(0, 2, 3, 1)
        if height % 2 or width % 2:
            rows = rows[:, : height // 2 * 2, : width // 2 * 2]
        rows = torch.maximum(*rows.view(n, height // 2, 2, -1, channels).unbind(2))
        rows = torch.maximum(*rows.view(n, height // 2, width // 2, 2, channels).unbind(3))
        return rows.permute(0, 3, 1, 2)

    return forward


def is_halving_pool(layer: nn.MaxPool2d) -> bool:
    """Whether a pool takes the maximum of each 2 x 2 window, without padding."""
    halves = (2, (2, 2))
    plain = layer.padding in (0, (0, 0)) and layer.dilation in (1, (1, 1)) and not layer.ceil_mode
    return layer.kernel_size in halves and layer.stride in halves and plain and not layer.return_indices


def _behind_fresh(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """ReLUs that a plain Sequential calls on new memory, which only they read."""
    return [
        (f"{name}.{position}".lstrip("."), after)
        for name, chain in module.named_modules()
        if type(chain) is nn.Sequential
        for position, (before, after) in enumerate(pairwise(chain), 1)
        if type(after) is nn.ReLU and type(before) in _FRESH and not hooked(before)
    ]


_FRESH = (nn.Linear, nn.Conv2d, nn.MaxPool2d, nn.BatchNorm2d, nn.GroupNorm)

_FORWARDS: dict[type, Callable[..., Forward | None]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    nn.MaxPool2d: _max_pool,
}

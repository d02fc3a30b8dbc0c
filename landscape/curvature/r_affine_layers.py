"""Dense and convolutional layers of the R-operator: maps linear in weight and in input.

A product needs the map, its transpose and its derivative by the weight, at the weight and at the change of it. On a CPU
all three use oneDNN, in float32: the matrix library may not use the widest registers of a CPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_weight

from landscape.sweep.onednn_calls import dense
from landscape.sweep.onednn_layers import LEAST_WEIGHTS

NamedViews = dict[str, Tensor]
"""Views of a vector (d,) by parameter name."""

LayerState = dict[str, Tensor]
"""Tensors of a layer on one block of samples, in memory between products."""


class Affine(ABC):
    """Linear or convolutional layer: bilinear in weight and input, plus a bias.

    Args:
        prefix: Of its parameters' names.
        views: The parameters in theta, with all parameters of this layer or, in a frozen layer, none.
        first: No layer in front has parameters in theta.
    """

    def __init__(self, module: nn.Module, prefix: str, views: NamedViews, first: bool) -> None:
        own = {name: parameter.detach() for name, parameter in module.named_parameters()}
        self.weight_name, self.bias_name, self.first = f"{prefix}weight", f"{prefix}bias", first
        self.trained = self.weight_name in views
        self.weight = views.get(self.weight_name, own["weight"])
        self.bias = views.get(self.bias_name, own.get("bias"))

    def run(self, inputs: Tensor, state: LayerState) -> Tensor:
        state["inputs"] = inputs
        return self.image(inputs, self.weight, self.bias)

    def derive(self, state: LayerState, delta: Tensor, out: NamedViews | None) -> Tensor | None:
        if out is not None:
            self._add(delta, state["inputs"], out)
        if self.first:
            return None
        state["delta"] = delta.clone(memory_format=torch.preserve_format)
        return self.transposed(delta, self.weight, state)

    def forward(self, state: LayerState, moved: Tensor | None, v: NamedViews) -> Tensor | None:
        carried = None if moved is None else self.image(moved, self.weight, None)
        if not self.trained:
            return carried
        own = self.image(state["inputs"], v[self.weight_name], v.get(self.bias_name))
        return own if carried is None else own.add_(carried)

    def backward(
        self, state: LayerState, back: Tensor, moved: Tensor | None, v: NamedViews, out: NamedViews
    ) -> Tensor | None:
        self._add(back, state["inputs"], out)
        if self.trained and moved is not None:
            self.add_outer(state["delta"], moved, out[self.weight_name])
        if self.first:
            return None
        total = self.transposed(back, self.weight, state)
        if self.trained and moved is not None:
            total.add_(self.transposed(state["delta"], v[self.weight_name], state))
        return total

    def _add(self, delta: Tensor, inputs: Tensor, out: NamedViews) -> None:
        """Add the derivative of sum(delta * output) by the parameters of this layer."""
        if not self.trained:
            return
        self.add_outer(delta, inputs, out[self.weight_name])
        if self.bias is not None:
            out[self.bias_name].add_(delta.sum([axis for axis in range(delta.ndim) if axis != 1]))

    @abstractmethod
    def image(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Output of the layer with these parameters."""

    @abstractmethod
    def transposed(self, delta: Tensor, weight: Tensor, state: LayerState) -> Tensor:
        """The transposed map, from outputs to inputs."""

    @abstractmethod
    def add_outer(self, delta: Tensor, inputs: Tensor, out: Tensor) -> None:
        """Add the derivative of sum(delta * output) by the weight."""


class Linear(Affine):
    """inputs (n, i) -> (n, o)."""

    def image(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _dense(inputs, weight, bias)

    def transposed(self, delta: Tensor, weight: Tensor, state: LayerState) -> Tensor:
        return _dense(delta, weight.T, None)

    def add_outer(self, delta: Tensor, inputs: Tensor, out: Tensor) -> None:
        if _suits(out):
            out.add_(_dense(delta.T, inputs.T, None))
        else:
            out.addmm_(delta.T, inputs)


class Convolution(Affine):
    """Two-dimensional convolution with zero padding."""

    def __init__(self, module: nn.Conv2d, prefix: str, views: NamedViews, first: bool) -> None:
        super().__init__(module, prefix, views, first)
        self.geometry: tuple[Any, ...] = (module.stride, module.padding, module.dilation, module.groups)

    def image(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.conv2d(inputs, weight, bias, *self.geometry)

    def transposed(self, delta: Tensor, weight: Tensor, state: LayerState) -> Tensor:
        stride, padding, dilation, groups = self.geometry
        least = [
            (delta.shape[axis] - 1) * stride[axis - 2] - 2 * padding[axis - 2] + dilation[axis - 2] * (side - 1) + 1
            for axis, side in enumerate(weight.shape[2:], 2)
        ]
        unseen = [side - low for side, low in zip(state["inputs"].shape[2:], least, strict=True)]
        return F.conv_transpose2d(delta, weight, None, stride, padding, unseen, groups, dilation)

    def add_outer(self, delta: Tensor, inputs: Tensor, out: Tensor) -> None:
        out.add_(conv2d_weight(inputs, out.shape, delta, *self.geometry))


def _dense(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """inputs (n, i), weight (o, i) -> (n, o)."""
    if _suits(weight):
        return dense(inputs, weight, bias, None)
    return F.linear(inputs, weight, bias)


def _suits(weight: Tensor) -> bool:
    cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    return cpu and weight.numel() >= LEAST_WEIGHTS and torch.backends.mkldnn.is_available()

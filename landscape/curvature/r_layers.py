"""Layers of the R-operator: their state on a block of samples, and forward and backward derivatives.

`moved` is the derivative of a layer's input or output along a change v of the parameters; None stands for zero, so that
layers in front of the first one with parameters cost nothing. `delta` is the derivative of the loss by an output, and
`back` the derivative of `delta` along v; both end, as None, at the first layer with parameters.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.curvature.r_affine_layers import Convolution, LayerState, Linear, NamedViews


class Step(Protocol):
    """One layer."""

    def run(self, inputs: Tensor, state: LayerState) -> Tensor:
        """Output at the model itself; writes what products need into `state`."""

    def derive(self, state: LayerState, delta: Tensor, out: NamedViews | None) -> Tensor | None:
        """`delta` of the input from that of the output; adds the derivative by its parameters to `out`, if any.

        Products may overwrite the result.
        """

    def forward(self, state: LayerState, moved: Tensor | None, v: NamedViews) -> Tensor | None:
        """`moved` of the output from that of the input; it may be changed in place."""

    def backward(
        self, state: LayerState, back: Tensor, moved: Tensor | None, v: NamedViews, out: NamedViews
    ) -> Tensor | None:
        """`back` of the input from that of the output; adds the part of H v of its parameters to `out`.

        Args:
            moved: That of the input; None omits the terms with `delta`, as in the Gauss-Newton matrix.
        """


class Rectifier:
    """ReLU: passes where its output is positive."""

    def run(self, inputs: Tensor, state: LayerState) -> Tensor:
        outputs = inputs.relu()
        state["mask"] = (outputs > 0).to(inputs.dtype)
        return outputs

    def derive(self, state: LayerState, delta: Tensor, out: NamedViews | None) -> Tensor | None:
        return delta * state["mask"]

    def forward(self, state: LayerState, moved: Tensor | None, v: NamedViews) -> Tensor | None:
        return None if moved is None else moved.mul_(state["mask"])

    def backward(
        self, state: LayerState, back: Tensor, moved: Tensor | None, v: NamedViews, out: NamedViews
    ) -> Tensor | None:
        return back.mul_(state["mask"])


class MaxPool:
    """Max pooling: passes the entries that were the largest.

    Args:
        shape: Of one input, (channels, height, width).
    """

    def __init__(self, module: nn.MaxPool2d, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.geometry = (module.kernel_size, module.stride, module.padding, module.dilation, module.ceil_mode)
        pairs = zip(_pair(module.kernel_size), _pair(module.stride), _pair(module.dilation), strict=True)
        self.overlapping = any((kernel - 1) * dilation >= stride for kernel, stride, dilation in pairs)

    def run(self, inputs: Tensor, state: LayerState) -> Tensor:
        outputs, largest = F.max_pool2d(inputs, *self.geometry, return_indices=True)
        channels, height, width = self.shape
        image = torch.arange(len(inputs), device=inputs.device) * (height * width * channels)
        places = largest.mul_(channels).add_(torch.arange(channels, device=inputs.device)[:, None, None])
        state["chosen"] = places.add_(image[:, None, None, None]).permute(0, 2, 3, 1).contiguous()
        return outputs

    def derive(self, state: LayerState, delta: Tensor, out: NamedViews | None) -> Tensor | None:
        state["spread"] = delta.new_zeros(len(delta) * math.prod(self.shape))
        return self._spread(state, delta, state["spread"])

    def forward(self, state: LayerState, moved: Tensor | None, v: NamedViews) -> Tensor | None:
        if moved is None:
            return None
        largest = state["chosen"]
        return _flat(moved).index_select(0, largest.view(-1)).view(largest.shape).permute(0, 3, 1, 2)

    def backward(
        self, state: LayerState, back: Tensor, moved: Tensor | None, v: NamedViews, out: NamedViews
    ) -> Tensor | None:
        if self.overlapping:
            state["spread"].zero_()
        return self._spread(
            state, back, state["spread"]
        )  # without overlap the entries are always the same, the others stay 0

    def _spread(self, state: LayerState, delta: Tensor, out: Tensor) -> Tensor:
        """delta where an entry was the largest, 0 elsewhere; channels last."""
        if self.overlapping:
            out.scatter_add_(0, state["chosen"].view(-1), _flat(delta))
        else:
            out.scatter_(0, state["chosen"].view(-1), _flat(delta))
        channels, height, width = self.shape
        return out.view(len(delta), height, width, channels).permute(0, 3, 1, 2)


class Flatten:
    """Images to rows.

    Args:
        shape: Of one input.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def run(self, inputs: Tensor, state: LayerState) -> Tensor:
        return inputs.flatten(1)

    def derive(self, state: LayerState, delta: Tensor, out: NamedViews | None) -> Tensor | None:
        return self._image(delta)

    def forward(self, state: LayerState, moved: Tensor | None, v: NamedViews) -> Tensor | None:
        return None if moved is None else moved.flatten(1)

    def backward(
        self, state: LayerState, back: Tensor, moved: Tensor | None, v: NamedViews, out: NamedViews
    ) -> Tensor | None:
        return self._image(back)

    def _image(self, rows: Tensor) -> Tensor:
        image = rows.unflatten(1, self.shape)
        return image.contiguous(memory_format=torch.channels_last) if image.ndim == 4 else image


def step(module: nn.Module, prefix: str, views: NamedViews, shape: tuple[int, ...], first: bool) -> Step | None:
    """The step of a layer whose input has `shape` (without the samples), or None if it is none of these."""
    kind = type(module)
    affine = {prefix + name for name, _ in module.named_parameters()}
    if affine and not (affine <= set(views) or affine.isdisjoint(views)):
        return None
    if kind is nn.Linear and len(shape) == 1:
        return Linear(module, prefix, views, first)
    if isinstance(module, nn.Conv2d) and kind is nn.Conv2d:
        plain = module.padding_mode == "zeros" and not isinstance(module.padding, str)
        return Convolution(module, prefix, views, first) if plain else None
    if kind is nn.ReLU:
        return Rectifier()
    if isinstance(module, nn.MaxPool2d) and kind is nn.MaxPool2d:
        return None if module.return_indices else MaxPool(module, shape)
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return Flatten(shape)
    return None


def _flat(images: Tensor) -> Tensor:
    """Images (n, C, h, w) as one row in the order n, h, w, C, without a copy where channels lie last."""
    return images.permute(0, 2, 3, 1).flatten()


def _pair(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value, value]

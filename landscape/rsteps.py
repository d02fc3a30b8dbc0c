"""The layers that the R-operator knows: what each holds of a block of samples, and how it passes derivatives on.

`moved` is the derivative of a layer's input or output along a change v of the parameters; None stands for zero, so that
layers in front of the first one with parameters cost nothing. `delta` is the derivative of the loss by an output, and
`back` the derivative of `delta` along v; both end, as None, at the first layer with parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Named = dict[str, Tensor]
"""Views of a vector (d,) by parameter name."""

Held = dict[str, Tensor]
"""What a step holds of one block of samples between products."""


class Step(Protocol):
    """One layer."""

    def run(self, inputs: Tensor, held: Held) -> Tensor:
        """Output at the model itself; what products need is put into `held`."""

    def derive(self, held: Held, delta: Tensor) -> Tensor | None:
        """`delta` of the input from that of the output."""

    def forward(self, held: Held, moved: Tensor | None, v: Named) -> Tensor | None:
        """`moved` of the output from that of the input; it may be changed in place."""

    def backward(self, held: Held, back: Tensor, moved: Tensor | None, v: Named, out: Named) -> Tensor | None:
        """`back` of the input from that of the output; the part of H v of its own parameters is added to `out`.

        Args:
            moved: That of the input; with None the terms with `delta` are left out, which the Gauss-Newton matrix
                does not have.
        """


class Affine(ABC):
    """Linear or convolutional layer: bilinear in weight and input, plus a bias.

    Args:
        prefix: Of its parameters' names.
        named: The parameters in theta; this layer's are all there or, in a frozen layer, none is.
        first: No layer in front has parameters in theta.
    """

    def __init__(self, module: nn.Module, prefix: str, named: Named, first: bool) -> None:
        own = {name: parameter.detach() for name, parameter in module.named_parameters()}
        self.weight_name, self.bias_name, self.first = f"{prefix}weight", f"{prefix}bias", first
        self.trained = self.weight_name in named
        self.weight = named.get(self.weight_name, own["weight"])
        self.bias = named.get(self.bias_name, own.get("bias"))

    def run(self, inputs: Tensor, held: Held) -> Tensor:
        held["inputs"] = inputs
        return self.image(inputs, self.weight, self.bias)

    def derive(self, held: Held, delta: Tensor) -> Tensor | None:
        if self.first:
            return None
        held["delta"] = delta
        return self.transposed(delta, self.weight, held)

    def forward(self, held: Held, moved: Tensor | None, v: Named) -> Tensor | None:
        carried = None if moved is None else self.image(moved, self.weight, None)
        if not self.trained:
            return carried
        own = self.image(held["inputs"], v[self.weight_name], v.get(self.bias_name))
        return own if carried is None else own.add_(carried)

    def backward(self, held: Held, back: Tensor, moved: Tensor | None, v: Named, out: Named) -> Tensor | None:
        if self.trained:
            self.add_outer(back, held["inputs"], out[self.weight_name])
            if moved is not None:
                self.add_outer(held["delta"], moved, out[self.weight_name])
            if self.bias is not None:
                out[self.bias_name].add_(back.sum([axis for axis in range(back.ndim) if axis != 1]))
        if self.first:
            return None
        total = self.transposed(back, self.weight, held)
        if self.trained and moved is not None:
            total.add_(self.transposed(held["delta"], v[self.weight_name], held))
        return total

    @abstractmethod
    def image(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Output of the layer with these parameters."""

    @abstractmethod
    def transposed(self, delta: Tensor, weight: Tensor, held: Held) -> Tensor:
        """The transposed map, from outputs to inputs."""

    @abstractmethod
    def add_outer(self, delta: Tensor, inputs: Tensor, out: Tensor) -> None:
        """Adds the derivative of sum(delta * output) by the weight."""


class Linear(Affine):
    """inputs (n, i) -> (n, o)."""

    def image(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(inputs, weight, bias)

    def transposed(self, delta: Tensor, weight: Tensor, held: Held) -> Tensor:
        return delta @ weight

    def add_outer(self, delta: Tensor, inputs: Tensor, out: Tensor) -> None:
        out.addmm_(delta.T, inputs)


class Convolution(Affine):
    """Two-dimensional convolution with zero padding."""

    def __init__(self, module: nn.Conv2d, prefix: str, named: Named, first: bool) -> None:
        super().__init__(module, prefix, named, first)
        self.geometry: tuple[Any, ...] = (module.stride, module.padding, module.dilation, module.groups)

    def image(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.conv2d(inputs, weight, bias, *self.geometry)

    def transposed(self, delta: Tensor, weight: Tensor, held: Held) -> Tensor:
        return self._gradients(delta, held["inputs"], weight, True)[0]

    def add_outer(self, delta: Tensor, inputs: Tensor, out: Tensor) -> None:
        out.add_(self._gradients(delta, inputs, out, False)[1])

    def _gradients(self, delta: Tensor, inputs: Tensor, weight: Tensor, by_inputs: bool) -> Any:
        stride, padding, dilation, groups = self.geometry
        wanted = [by_inputs, not by_inputs, False]
        return torch.ops.aten.convolution_backward(
            delta, inputs, weight, None, stride, padding, dilation, False, [0, 0], groups, wanted
        )


class Rectifier:
    """ReLU: passes where its output is positive."""

    def run(self, inputs: Tensor, held: Held) -> Tensor:
        outputs = inputs.relu()
        held["mask"] = (outputs > 0).to(inputs.dtype)
        return outputs

    def derive(self, held: Held, delta: Tensor) -> Tensor | None:
        return delta * held["mask"]

    def forward(self, held: Held, moved: Tensor | None, v: Named) -> Tensor | None:
        return None if moved is None else moved.mul_(held["mask"])

    def backward(self, held: Held, back: Tensor, moved: Tensor | None, v: Named, out: Named) -> Tensor | None:
        return back.mul_(held["mask"])


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

    def run(self, inputs: Tensor, held: Held) -> Tensor:
        outputs, held["chosen"] = F.max_pool2d(inputs, *self.geometry, return_indices=True)
        return outputs

    def derive(self, held: Held, delta: Tensor) -> Tensor | None:
        if not self.overlapping:
            held["spread"] = self._empty(delta)
        return self._spread(held, delta, self._empty(delta))

    def _empty(self, delta: Tensor) -> Tensor:
        channels, height, width = self.shape
        return delta.new_zeros(len(delta), height * width, channels)

    def forward(self, held: Held, moved: Tensor | None, v: Named) -> Tensor | None:
        if moved is None:
            return None
        image = _rows(moved).gather(1, _rows(held["chosen"]))
        return image.unflatten(1, held["chosen"].shape[2:]).permute(0, 3, 1, 2)

    def backward(self, held: Held, back: Tensor, moved: Tensor | None, v: Named, out: Named) -> Tensor | None:
        if self.overlapping:
            return self._spread(held, back, self._empty(back))
        return self._spread(held, back, held["spread"])  # always into the same entries, the others stay 0

    def _spread(self, held: Held, delta: Tensor, out: Tensor) -> Tensor:
        """delta where an entry was chosen, 0 elsewhere; channels last."""
        if self.overlapping:
            out.scatter_add_(1, _rows(held["chosen"]), _rows(delta))
        else:
            out.scatter_(1, _rows(held["chosen"]), _rows(delta))
        return out.unflatten(1, self.shape[1:]).permute(0, 3, 1, 2)


class Flatten:
    """Images to rows.

    Args:
        shape: Of one input.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def run(self, inputs: Tensor, held: Held) -> Tensor:
        return inputs.flatten(1)

    def derive(self, held: Held, delta: Tensor) -> Tensor | None:
        image = delta.unflatten(1, self.shape)
        return image.contiguous(memory_format=torch.channels_last) if image.ndim == 4 else image

    def forward(self, held: Held, moved: Tensor | None, v: Named) -> Tensor | None:
        return None if moved is None else moved.flatten(1)

    def backward(self, held: Held, back: Tensor, moved: Tensor | None, v: Named, out: Named) -> Tensor | None:
        return self.derive(held, back)


def step(module: nn.Module, prefix: str, named: Named, shape: tuple[int, ...], first: bool) -> Step | None:
    """The step of a layer whose input has `shape` (without the samples), or None if it is none of these."""
    kind = type(module)
    affine = {prefix + name for name, _ in module.named_parameters()}
    if affine and not (affine <= set(named) or affine.isdisjoint(named)):
        return None
    if kind is nn.Linear and len(shape) == 1:
        return Linear(module, prefix, named, first)
    if isinstance(module, nn.Conv2d) and kind is nn.Conv2d:
        plain = module.padding_mode == "zeros" and not isinstance(module.padding, str)
        return Convolution(module, prefix, named, first) if plain else None
    if kind is nn.ReLU:
        return Rectifier()
    if isinstance(module, nn.MaxPool2d) and kind is nn.MaxPool2d:
        return None if module.return_indices else MaxPool(module, shape)
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return Flatten(shape)
    return None


def _rows(images: Tensor) -> Tensor:
    """Images (n, C, h, w) as (n, h w, C), without a copy where channels lie last."""
    return images.permute(0, 2, 3, 1).flatten(1, 2)


def _pair(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value, value]

"""`Flat`: a private copy of a module bound to one parameter vector; training and sweeps run on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from landscape.model.copies import convert, copy_module
from landscape.model.input_format import Habits
from landscape.model.layout import Layout
from landscape.model.losses import PerSample, batch_mean, loss_blocks
from landscape.model.samples import Inputs, Samples, call_module, map_leaves


class Flat:
    """Private copy of a module whose parameters are views of `theta` (d,) and whose gradients are views of `grad` (d,).

    Setting the model is one copy into `theta`; an optimiser step is one operation on two vectors.
    The module starts in eval mode; `training(True)` switches it.
    """

    def __init__(
        self,
        module: nn.Module,
        layout: Layout,
        loss: PerSample,
        *,
        dtype: torch.dtype,
        device: torch.device,
        habits: Habits | None = None,
    ) -> None:
        self.layout = layout
        self.loss = loss
        self.module = without_fused_encoders(convert(copy_module(module), dtype, device).eval())
        self.habits = habits or Habits()
        self.theta = layout.theta(self.module)
        self.grad = torch.zeros_like(self.theta)
        self.buffers = layout.buffer_vector(self.module).to(self.theta)
        for name, view in layout.named(self.theta).items():
            self.module.get_parameter(name).data = view
        for name, gradient in layout.named(self.grad).items():
            self.module.get_parameter(name).grad = gradient
        for name, view in layout.named_buffers(self.buffers).items():
            self.module.get_buffer(name).set_(view)  # type: ignore[call-overload]
        counters = [buffer for buffer in self.module.buffers() if not buffer.is_floating_point()]
        self._counters = [(counter, counter.clone()) for counter in counters]
        self._bound = [
            (layer, name, buffer)
            for layer in self.module.modules()
            for name, buffer in layer.named_buffers(recurse=False, remove_duplicate=False)
        ]

    def anew(self, dtype: torch.dtype | None = None) -> Flat:
        """A copy of the same model, by default in the same dtype."""
        dtype, device = dtype or self.theta.dtype, self.theta.device
        return Flat(self.module, self.layout, self.loss, dtype=dtype, device=device, habits=self.habits)

    @cached_property
    def has_batch_statistics(self) -> bool:
        """Whether a layer normalises by the statistics of the minibatch."""
        from landscape.model.batchnorm import normalisers  # imports this module

        return bool(normalisers(self.module))

    def load(self, theta: Tensor, buffers: Tensor | None = None) -> None:
        """Copy parameters (d,) and optionally buffers (b,) into the model; buffers also reset integer counters."""
        self.layout.named(theta)  # checks the length
        self.theta.copy_(theta)
        if buffers is not None:
            self.layout.named_buffers(buffers)
            self.buffers.copy_(buffers)
            for counter, first in self._counters:
                counter.copy_(first)

    def training(self, on: bool) -> None:
        """Switch train mode (batch statistics, dropout) on or off."""
        self.module.train(on)

    def cast(self, inputs: Inputs) -> Inputs:
        """Inputs in the dtype and on the device of the module, images channels-last if the module accepts that.

        Copies if the module changes its inputs in place (`habits`); otherwise tensors may be shared with the argument.
        """
        cast = map_leaves(self._channels_last if self.habits.channels_last else self._to_device, inputs)
        return map_leaves(torch.clone, cast) if self.habits.copies else cast

    def outputs(self, inputs: Inputs) -> Tensor:
        """Module output on `inputs` at the current theta."""
        outputs = call_module(self.module, self.cast(inputs))
        self._gather_buffers()
        return outputs

    def changed_buffers(self, before: Tensor) -> bool:
        """Whether the buffers differ from `before` (b,), or the counters from those of the original module."""
        return not torch.equal(self.buffers, before.to(self.buffers)) or any(
            not torch.equal(counter, first) for counter, first in self._counters
        )

    def gradient(self, samples: Samples) -> Tensor:
        """Mean loss () of `samples`, detached; writes its gradient into `grad`."""
        self.grad.zero_()
        outputs = self.outputs(samples.inputs)
        if not outputs.requires_grad:
            raise ValueError(f"{type(self.module).__name__} has no gradient: its forward detaches the outputs.")
        loss = batch_mean(self.loss, outputs, samples.targets.to(self.theta.device))
        loss.backward()
        return loss.detach()

    def loss_and_gradient(self, theta: Tensor, samples: Samples, block: int) -> tuple[float, Tensor]:
        """Mean loss at theta (d,), which it loads, and its gradient (d,) over all samples, by blocks of them."""
        self.theta.copy_(theta)
        total, gradient = 0.0, torch.zeros_like(theta)
        for batch, share in zip(*loss_blocks(self.loss, samples, block), strict=True):
            total += share * float(self.gradient(batch))
            gradient.add_(self.grad, alpha=share)
        return total, gradient

    def functional(self, theta: Tensor, inputs: Inputs) -> Tensor:
        """Module output at another theta (d,), differentiable in it; `self.theta` does not change."""
        return outputs_with(self.module, self.layout.named(theta), self.cast(inputs))

    def functional_loss(self, theta: Tensor, samples: Samples) -> Tensor:
        """Mean loss () at another theta (d,), differentiable in it (twice, with the math attention kernel)."""
        return batch_mean(self.loss, self.functional(theta, samples.inputs), samples.targets.to(theta.device))

    def _gather_buffers(self) -> None:
        """Copy buffers that the module replaced (`self.mean = ...`) into the bound ones, and bind these again."""
        for owner, name, bound in self._bound:
            fresh = getattr(owner, name)
            if fresh is not bound:
                if fresh is not None:
                    bound.data.copy_(fresh.detach())
                setattr(owner, name, bound)

    def _to_device(self, leaf: Tensor) -> Tensor:
        return leaf.to(self.theta if leaf.is_floating_point() else self.theta.device)

    def _channels_last(self, leaf: Tensor) -> Tensor:
        if leaf.ndim == 4 and leaf.is_floating_point():
            return leaf.to(self.theta, memory_format=torch.channels_last)
        return self._to_device(leaf)


def outputs_with(module: nn.Module, tensors: Mapping[str, Tensor], inputs: Inputs) -> Tensor:
    """Module output on `inputs` with other parameters and buffers by name, also where these are tied.

    Each place in a module has one name: torch ties all names of a tensor, and leaves the other tensor in a module that
    has two (`encoder.embed = shared`).
    """
    names_of: dict[Tensor, list[str]] = {}
    for prefix, layer in module.named_modules():
        for listed in (layer.named_parameters, layer.named_buffers):
            for name, tensor in listed(prefix=prefix, recurse=False, remove_duplicate=False):
                names_of.setdefault(tensor, []).append(name)
    names = {name: tied for tied in names_of.values() for name in tied}
    state = {other: tensor for name, tensor in tensors.items() for other in names[name]}
    return call_module(lambda *args, **named: functional_call(module, state, args, named, tie_weights=False), inputs)


def without_fused_encoders(module: nn.Module) -> nn.Module:
    """Let encoders of torch call their layers in eval mode as in training, and treat padding alike in both.

    Without gradients they would pass their layers by (`torch.backends.mha`), unless these have hooks.
    """
    for layer in module.modules():
        if isinstance(layer, nn.TransformerEncoderLayer):
            layer.activation_relu_or_gelu = 0
        elif isinstance(layer, nn.TransformerEncoder):
            layer.use_nested_tensor = False
    return module

"""A module bound to one parameter vector: the working horse of training and of sweeps."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from landscape.layout import Layout
from landscape.samples import Inputs, Samples, called, mapped


class Flat:
    """Private copy of a module whose parameters are views of `theta` (d,) and whose gradients are views of `grad` (d,).

    Setting the model is one copy into `theta`; an optimiser step is one operation on two vectors.
    The module starts in eval mode; `training(True)` switches it.
    """

    def __init__(
        self,
        module: nn.Module,
        layout: Layout,
        loss: Callable[[Tensor, Tensor], Tensor],
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.layout = layout
        self.loss = loss
        self.module = deepcopy(module).to(dtype=dtype, device=device).eval()
        self.theta = layout.theta(self.module)
        self.grad = torch.zeros_like(self.theta)
        self.buffers = layout.buffer_vector(self.module).to(self.theta)
        self._bind(self.theta)
        for name, gradient in layout.named(self.grad).items():
            self.module.get_parameter(name).grad = gradient
        for name, view in layout.named_buffers(self.buffers).items():
            self.module.get_buffer(name).set_(view)  # type: ignore[call-overload]
        counters = [buffer for buffer in self.module.buffers() if not buffer.is_floating_point()]
        self._counters = [(counter, counter.clone()) for counter in counters]

    @cached_property
    def has_batch_statistics(self) -> bool:
        """Whether a layer normalises by the statistics of the minibatch."""
        from landscape.batchnorm import normalisers  # which needs this module

        return bool(normalisers(self.module))

    @cached_property
    def step_gradient(self) -> Callable[[Flat, Samples], Tensor]:
        """`gradient` as it is fastest in training: replayed from a recording on a GPU, called as it is elsewhere."""
        if self.theta.device.type != "cuda":
            return Flat.gradient
        from landscape.replayed import Replayed  # which needs this module

        return Replayed(self).gradient

    def load(self, theta: Tensor, buffers: Tensor | None = None) -> None:
        """Copy a model's parameters (d,) and, where given, buffers (b,) in; with these, counters begin anew."""
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
        """Inputs as the module wants them: its dtype and device, images channels-last."""
        return mapped(self._cast, inputs)

    def outputs(self, inputs: Inputs) -> Tensor:
        """Module output on `inputs` at the current theta."""
        return called(self.module, self.cast(inputs))

    def gradient(self, samples: Samples) -> Tensor:
        """Mean loss () of `samples`, detached; its gradient is left in `grad`."""
        self.grad.zero_()
        loss = self.loss(self.outputs(samples.inputs), samples.targets.to(self.theta.device)).mean()
        loss.backward()
        return loss.detach()

    def functional(self, theta: Tensor, inputs: Inputs) -> Tensor:
        """Module output at another theta (d,), differentiable in it; the current one stays."""
        state = self.layout.named(theta)
        return called(lambda *args, **kwargs: functional_call(self.module, state, args, kwargs), self.cast(inputs))

    def functional_loss(self, theta: Tensor, samples: Samples) -> Tensor:
        """Mean loss () at another theta (d,), differentiable in it (twice, with the math attention kernel)."""
        return self.loss(self.functional(theta, samples.inputs), samples.targets.to(theta.device)).mean()

    def _bind(self, theta: Tensor) -> None:
        for name, view in self.layout.named(theta).items():
            self.module.get_parameter(name).data = view

    def _cast(self, leaf: Tensor) -> Tensor:
        if not leaf.is_floating_point():
            return leaf.to(self.theta.device)
        if leaf.ndim == 4:
            return leaf.to(self.theta, memory_format=torch.channels_last)
        return leaf.to(self.theta)

"""Hessian-vector products by the R-operator, without autograd, for chains of plain layers under cross-entropy.

Source: Pearlmutter 1994, sections 3 and 4. What does not depend on the vector (activations, masks, the derivatives of
the loss by each layer's output) is computed once per model; a product is then one forward and one backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from landscape.curvature import r_layers
from landscape.curvature.r_affine_layers import LayerState, NamedViews
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import cross_entropy
from landscape.probe import close_outputs
from landscape.sweep.layer_calls import trace_calls


@dataclass(frozen=True)
class Chain:
    """A model that is a chain of known layers under cross-entropy, at one theta (d,)."""

    flat: Flat
    theta: Tensor
    steps: tuple[r_layers.Step, ...]

    def linearise(
        self, samples: Samples, *, block: int, memory: int, gauss_newton: bool = False
    ) -> tuple[Callable[[Tensor], Tensor], Tensor] | None:
        """v (d,) -> H v (d,) of the mean loss, or G v with the Gauss-Newton matrix G; and the gradient (d,).

        None where the model is another function of one of these samples, or has an infinite loss there.

        Args:
            block: Samples in one pass.
            memory: Most bytes in memory between products; blocks beyond that are computed per product.
        """
        gradient, room = torch.zeros_like(self.theta), memory
        cached: list[_Block] = []
        blocks = list(samples.blocks(block))
        for part in blocks:
            state_block = self._block(part, len(samples), gradient)
            with torch.no_grad():
                outputs = self.flat.outputs(part.inputs)
                finite = bool(self.flat.loss(outputs, part.targets.to(outputs.device)).isfinite().all())
                if not finite or not close_outputs(state_block.softmax, outputs.softmax(1)):
                    return None
            room -= state_block.nbytes()
            if room >= 0:
                cached.append(state_block)
        rest = blocks[len(cached) :]

        def product(vector: Tensor) -> Tensor:
            image = torch.zeros_like(self.theta)
            v, out = self.flat.layout.named(vector), self.flat.layout.named(image)
            with torch.no_grad():
                for block in cached:
                    self._add(block, v, out, gauss_newton)
                for part in rest:
                    self._add(self._block(part, len(samples)), v, out, gauss_newton)
            return image

        return product, gradient

    def state_bytes(self, samples: Samples) -> int:
        """Bytes in memory between products for these samples."""
        return self._block(samples, len(samples)).nbytes()

    @torch.no_grad()
    def _block(self, samples: Samples, count: int, gradient: Tensor | None = None) -> _Block:
        """Activations and derivatives of one block; adds its part of the gradient of a mean over `count`."""
        value: Any = self.flat.cast(samples.inputs)
        states: list[LayerState] = [{} for _ in self.steps]
        for step, state in zip(self.steps, states, strict=True):
            value = step.run(value, state)
        softmax: Tensor = value.softmax(1)
        targets = samples.targets.to(softmax.device)
        delta: Tensor | None = (softmax - nn.functional.one_hot(targets, softmax.shape[1])) / count
        out = None if gradient is None else self.flat.layout.named(gradient)
        for step, state in zip(reversed(self.steps), reversed(states), strict=True):
            delta = None if delta is None else step.derive(state, delta, out)
        return _Block(states, softmax, count)

    def _add(self, block: _Block, v: NamedViews, out: NamedViews, gauss_newton: bool) -> None:
        moved: Tensor | None = None
        received: list[Tensor | None] = []
        for step, state in zip(self.steps, block.states, strict=True):
            received.append(moved)
            moved = step.forward(state, moved, v)
        if moved is None:
            return
        weighted = block.softmax * moved
        back: Tensor | None = weighted.sub_(block.softmax * weighted.sum(1, keepdim=True)).div_(block.count)
        for step, state, entered in zip(reversed(self.steps), reversed(block.states), reversed(received), strict=True):
            if back is None:
                return
            back = step.backward(state, back, None if gauss_newton else entered, v, out)


@dataclass(frozen=True)
class _Block:
    """One block of samples: a state per layer, and the softmax (n, C)."""

    states: list[LayerState]
    softmax: Tensor
    count: int

    def nbytes(self) -> int:
        tensors = [self.softmax, *(tensor for state in self.states for tensor in state.values())]
        storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors}
        return sum(storage.nbytes() for storage in storages.values())


def chain(flat: Flat, theta: Tensor, probe: Samples) -> Chain | None:
    """The model of `flat` at theta as a chain, or None if it is no chain.

    Determined by a call on the probe: every layer is called once, on the output of the previous one. Functions between
    layers and shared parameters are not visible in the calls; compare a product with `hessian.hvp`.
    """
    if flat.loss is not cross_entropy or probe.targets.is_floating_point() or not isinstance(probe.inputs, Tensor):
        return None
    calls = _calls(flat, probe)
    if calls is None:
        return None
    views, steps, first = flat.layout.named(theta), [], True
    for name, module, shape in calls:
        if isinstance(module, nn.Dropout | nn.Identity):
            continue
        prefix = f"{name}." if name else ""
        step = r_layers.step(module, prefix, views, shape, first)
        if step is None:
            return None
        first = first and not any(prefix + own in views for own, _ in module.named_parameters())
        steps.append(step)
    return Chain(flat, theta, tuple(steps))


def _calls(flat: Flat, probe: Samples) -> list[tuple[str, nn.Module, tuple[int, ...]]] | None:
    """Name, layer and shape of one input of every layer in the order of calls; None if they are no chain."""
    seen = trace_calls(flat, probe.inputs)
    usable = seen.chained and seen.once and not any(call.layer.training or call.hooked for call in seen.calls)
    if not seen.calls or not usable or seen.output.ndim != 2:
        return None
    return [(call.name, call.layer, tuple(call.inputs[0].shape[1:])) for call in seen.calls]

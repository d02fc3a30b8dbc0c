"""The first layer of a model, computed once for a basis instead of once for every point of a sweep.

A linear or convolutional layer is affine in its weight and bias together. Where its input does not depend on
parameters, its output at theta = c @ basis is exactly the combination c of its outputs at the basis models.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from landscape.flat import Flat
from landscape.samples import Inputs, Samples

READ_COST = 8
"""Reading one basis output costs about as much as 8 of the products that make one (measured: 5 x 5 convolutions)."""

MOST_BYTES = 4 * 2**20
"""Basis outputs of one sample that are worth holding."""


class FirstLayer:
    """A layer of `flat` whose output is the combination of the outputs of the basis models (n, d).

    `prepare` computes these for a block of inputs, then `at` sets the point; the layer's forward is replaced
    until `release`.

    Args:
        name: The layer's name in the module.
        held: Bytes a sample of the basis models' outputs.
    """

    def __init__(self, flat: Flat, name: str, basis: Tensor, held: int = 0) -> None:
        self.held = held
        self.layer = flat.module.get_submodule(name)
        self._flat = flat
        prefix = f"{name}." if name else ""
        own = [parameter for parameter, _ in self.layer.named_parameters()]
        named = [flat.layout.named(row) for row in basis]
        self._parameters = [{parameter: row[prefix + parameter] for parameter in own} for row in named]
        self._outputs: list[Tensor] = []
        self._value: Tensor | None = None
        self._forward = vars(self.layer).get("forward")

    def prepare(self, inputs: Inputs) -> None:
        """Compute the basis models' outputs of the layer on a block of inputs."""
        received = _received(self._flat, self.layer, inputs)
        self._outputs = [functional_call(self.layer, row, (received,)) for row in self._parameters]

    def at(self, coefficients: Sequence[float]) -> None:
        """Let the layer return its output at coefficients (n,)."""
        if self._value is None or self._value.shape != self._outputs[0].shape:
            self._value = torch.empty_like(self._outputs[0])
        value = combine(self._outputs, coefficients, out=self._value)
        self.layer.forward = lambda _: value

    def release(self) -> None:
        """Give the layer its own forward back."""
        _restore(self.layer, self._forward)
        self._outputs = []


def combine(rows: Sequence[Tensor] | Tensor, coefficients: Sequence[float], *, out: Tensor | None = None) -> Tensor:
    """sum_j coefficients[j] rows[j], new or in `out`; zeros are skipped, so a corner is its model bit for bit.

    Term by term, never as a matrix product, so that the bits do not depend on what else is computed with it.
    Memory in use already (`out`) spares the page faults that fresh memory of some MB costs.
    """
    total: Tensor | None = None
    for row, coefficient in zip(rows, coefficients, strict=True):
        if coefficient != 0:
            total = torch.mul(row, coefficient, out=out) if total is None else total.add_(row, alpha=coefficient)
    if total is None:
        return torch.zeros_like(rows[0]) if out is None else out.zero_()
    return total


def first_layer(flat: Flat, basis: Tensor, probe: Samples) -> FirstLayer | None:
    """The layer to share over combinations of `basis` (n, d), or None where that is wrong or does not pay.

    The first linear or convolutional layer, if on the `probe` what it receives is bit-equal under two thetas,
    and the loss is the same with the layer's parameters spoilt, which shows any other use of them.
    """
    found = _first_called(flat, flat.cast(probe.inputs))
    if found is None:
        return None
    name, outputs_size = found
    layer = flat.module.get_submodule(name)
    products = layer.get_parameter("weight")[0].numel()
    held = len(basis) * outputs_size * basis.element_size()
    if len(basis) * READ_COST > products or held > MOST_BYTES:
        return None
    return FirstLayer(flat, name, basis, held) if _exact(flat, name, probe) else None


class _Reached(Exception):
    """Carries a layer's input out of a forward pass that is not needed further."""

    def __init__(self, received: Tensor) -> None:
        self.received = received


def _received(flat: Flat, layer: nn.Module, inputs: Inputs) -> Tensor:
    def stop(received: Tensor) -> Tensor:
        raise _Reached(received)

    before = vars(layer).get("forward")
    vars(layer)["forward"] = stop
    try:
        flat.outputs(inputs)
    except _Reached as reached:
        return reached.received
    finally:
        _restore(layer, before)
    raise RuntimeError("the first layer was not reached")


def _restore(layer: nn.Module, forward: object) -> None:
    """Put back the forward that `layer` had of its own, or its class's."""
    if forward is None:
        del layer.forward
    else:
        vars(layer)["forward"] = forward


def _first_called(flat: Flat, inputs: Inputs) -> tuple[str, int] | None:
    """Name and output entries a sample of the first plain linear or convolutional layer that the model calls."""
    calls: list[tuple[nn.Module, int]] = []

    def note(module: nn.Module, _: object, output: Tensor) -> None:
        calls.append((module, output[0].numel()))

    plain = {module: name for name, module in flat.module.named_modules() if _is_plain(module, flat, name)}
    handles = [module.register_forward_hook(note) for module in plain]
    flat.outputs(inputs)
    for handle in handles:
        handle.remove()
    return (plain[calls[0][0]], calls[0][1]) if calls else None


def _is_plain(module: nn.Module, flat: Flat, name: str) -> bool:
    """Whether a module is exactly a linear or convolutional layer, without hooks, its parameters all in theta."""
    if type(module) not in (nn.Linear, nn.Conv2d) or module._forward_hooks or module._forward_pre_hooks:
        return False
    prefix = f"{name}." if name else ""
    inside = {entry for entry, _ in flat.layout.parameters}
    return all(prefix + own in inside for own, _ in module.named_parameters())


def _exact(flat: Flat, name: str, probe: Samples) -> bool:
    own = flat.theta.clone()
    noise = torch.randn(own.shape, generator=torch.Generator().manual_seed(0)).to(own)
    inputs, targets = flat.cast(probe.inputs), probe.targets.to(own.device)
    plain = flat.loss(flat.outputs(inputs), targets)
    if not bool(torch.isfinite(plain).all()):
        return False  # nothing can be compared
    received = _received(flat, flat.module.get_submodule(name), inputs).clone()
    shared = FirstLayer(flat, name, torch.stack([own + noise, own - noise]))
    flat.load(own + noise)
    same = torch.equal(received, _received(flat, shared.layer, inputs))
    shared.prepare(inputs)
    shared.at((0.5, 0.5))
    flat.load(own)
    for parameter in shared.layer.parameters():
        parameter.fill_(torch.nan)
    spoilt = flat.loss(flat.outputs(inputs), targets)
    shared.release()
    flat.load(own)
    tolerance = 100 * torch.finfo(own.dtype).eps ** 0.75 * plain.abs().max().item()
    return same and torch.allclose(spoilt, plain, rtol=0, atol=tolerance)

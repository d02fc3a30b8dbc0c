"""The first layer of a model, computed once per basis model instead of once per point of a sweep.

A linear or convolutional layer is affine in its weight and bias together. Where its input does not depend on
parameters, its output at theta = c @ basis is exactly the combination c of its outputs at the basis models.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from landscape.model import mapped_files
from landscape.model.bound_model import Flat
from landscape.model.input_format import alike
from landscape.model.samples import Inputs, Samples
from landscape.sweep.layer_calls import LayerCall, layer_input, trace_calls

READ_COST = 20
"""Reading one basis output costs about as much as 20 of the products that make one: with three models, first layers of
25 to 48 products an entry lost up to 8 % (ResNets, a transformer), one of 75 gained 15 % (cnn_cifar10)."""

MOST_BYTES = 4 * 2**20
"""Most bytes per sample of outputs at the basis for which sharing pays."""


MOST_CANCELLED = 4
"""Largest sum of the norms of the terms of a combination over its norm: rounding grows with the terms."""


class FirstLayer:
    """A layer of `flat` whose output is the combination of the outputs of the basis models (n, d).

    `at` sets the point and the block of inputs; the forward of the layer is overridden until `restore` or `release`.

    Where the coefficients sum to 1 and none is zero, the output is O_0 + sum_(j > 0) c_j D_j: D_j is the layer's output
    at basis_j - basis_0, as it is linear in weight and bias together; around a model (c_0 = 1) it is the same with O_j.
    That is one term less, and the terms of j > 1 are reused by the next point, which often differs in c_1 only.
    The bits of a point depend on its own row only.

    Args:
        name: The layer's name in the module.
    """

    def __init__(self, flat: Flat, name: str, basis: Tensor) -> None:
        self.name = name
        self.layer = flat.module.get_submodule(name)
        self._flat = flat
        self._count = len(basis)
        prefix = f"{name}." if name else ""
        names = [parameter for parameter, _ in self.layer.named_parameters()]
        models = [{entry: row[prefix + entry] for entry in names} for row in map(flat.layout.named, basis)]
        differences = [{parameter: row[parameter] - models[0][parameter] for parameter in names} for row in models[1:]]
        self._parameters = models + differences
        rows = torch.stack([torch.cat([row[name].flatten() for name in names]) for row in self._parameters]).double()
        self._products = (rows @ rows.T).cpu().numpy()
        self._received: Tensor | None = None
        self._outputs: dict[int, Tensor] = {}
        self._start: tuple[float, ...] | None = None
        self._memory: dict[str, Tensor] = {}

    def at(self, coefficients: Sequence[float], inputs: Inputs) -> None:
        """Let the layer return its output at coefficients (n,); those at the basis are computed at first use."""
        if self._received is None:
            self._received = layer_input(self._flat, self.layer, inputs)
        if is_around(coefficients):
            value = self._stepped(coefficients, 1)
        elif is_between(coefficients):
            value = self._stepped(coefficients, self._count)
        else:
            used = {index: share for index, share in enumerate(coefficients) if share != 0} or {0: 0.0}
            outputs, shares = [self._output(index) for index in used], list(used.values())
            value = combine(outputs, shares, out=self._buffer("value"))
        vars(self.layer)["forward"] = lambda _: value

    def cancels(self, coefficients: Sequence[float]) -> bool:
        """Whether rounding of the terms at coefficients (n,) may exceed that of their sum by far: beside a model that
        diverged the layer itself must compute this point."""
        shares = np.array(coefficients)
        count, norms = len(shares), np.diagonal(self._products) ** 0.5
        terms = np.abs(shares) * norms[:count]
        if is_between(shares):  # O_0 and differences
            terms = np.concatenate([norms[:1], np.abs(shares[1:]) * norms[count:]])
        size = shares @ self._products[:count, :count] @ shares
        return bool(terms.sum() > MOST_CANCELLED * max(size, 0) ** 0.5)

    def restore(self) -> None:
        """Restore the forward of the layer."""
        vars(self.layer).pop("forward", None)

    def release(self) -> None:
        """Restore the forward of the layer; the next block of inputs is another one."""
        self.restore()
        self._received, self._outputs, self._start = None, {}, None

    def _stepped(self, coefficients: Sequence[float], index: int) -> Tensor:
        """Output 0, then c_2, c_3, .. times the outputs behind `index`, then c_1 times the one at it."""
        start, first = (float(index), *coefficients[2:]), self._output(0)
        if len(start) > 1 and start != self._start:
            first = torch.add(first, self._output(index + 1), alpha=start[1], out=self._buffer("start"))
            for step, coefficient in enumerate(start[2:], 2):
                first.add_(self._output(index + step), alpha=coefficient)
            self._start = start
        first = self._memory["start"] if len(start) > 1 else first
        return torch.add(first, self._output(index), alpha=coefficients[1], out=self._buffer("value"))

    def _output(self, index: int) -> Tensor:
        """The layer's output at model `index` of the basis, then at the differences from its first."""
        if index not in self._outputs:
            self.restore()
            self._outputs[index] = functional_call(self.layer, self._parameters[index], (self._received,))
        return self._outputs[index]

    def _buffer(self, name: str) -> Tensor:
        """Buffer for one output, reused by each point."""
        like = next(iter(self._outputs.values()))
        if name not in self._memory or self._memory[name].shape != like.shape:
            self._memory[name] = torch.empty_like(like)
        return self._memory[name]


def is_around(coefficients: Sequence[float]) -> bool:
    """Whether a combination is the first model plus a nonzero multiple of every other row of the basis."""
    return len(coefficients) > 1 and coefficients[0] == 1 and 0 not in coefficients


def is_between(coefficients: Sequence[float] | np.ndarray) -> bool:
    """Whether no coefficient (n,), n > 1, is zero and they sum to 1."""
    return len(coefficients) > 1 and 0 not in coefficients and _sums_to_one(coefficients)


def combine(rows: Sequence[Tensor] | Tensor, coefficients: Sequence[float], *, out: Tensor | None = None) -> Tensor:
    """sum_j coefficients[j] rows[j], new or in `out`; zeros are skipped, so a corner is its model bit for bit.

    An entry that all rows share keeps its bits where the coefficients sum to 1: rows are mixed two by two, the largest
    coefficients first. Around the first row (coefficient 1) the others are added up first, so that an entry keeps its
    bits where they are 0 too. Term by term, never as a matrix product, so that the bits do not depend on other
    combinations. Reused memory (`out`) avoids the page faults of fresh memory of some MB. Of rows in a mapped file one
    is in memory at a time.
    """
    file = rows if isinstance(rows, Tensor) and mapped_files.is_mapped(rows) else None
    terms = [(float(share), row) for row, share in zip(rows, coefficients, strict=True) if share != 0]
    total = torch.empty_like(rows[0]) if out is None else out
    if not terms:
        return total.zero_()
    around, weight = coefficients[0] == 1, 0.0
    is_mean = not around and _sums_to_one(coefficients)
    for index, (share, row) in enumerate(
        [*terms[1:], terms[0]] if around else sorted(terms, key=lambda term: -term[0])
    ):
        weight += share  # of a mean above 0 throughout: positive shares come first
        if not index:
            torch.mul(row, 1 if is_mean else share, out=total)
        elif is_mean:
            total.lerp_(row, share / weight)
        else:
            total.add_(row, alpha=share)
        if file is not None:
            mapped_files.release(file.data_ptr())
    return total


def _sums_to_one(coefficients: Sequence[float] | np.ndarray) -> bool:
    return abs(sum(coefficients) - 1) < 1e-12


def first_layer(flat: Flat, basis: Tensor, probe: Samples) -> FirstLayer | None:
    """The layer to share over combinations of `basis` (n, d), or None if sharing is wrong or does not pay.

    Whether it pays is estimated by the size of the layer.

    The first linear or convolutional layer, if what it receives is made of the inputs alone, without parameters and
    buffers, and the outputs on the `probe` do not change.
    """
    first = _first_called(flat, flat.cast(probe.inputs))
    if first is None:
        return None
    name, outputs_size = first
    layer = flat.module.get_submodule(name)
    products = layer.get_parameter("weight")[0].numel()
    output_bytes = len(basis) * outputs_size * basis.element_size()
    if len(basis) * READ_COST > products or output_bytes > MOST_BYTES:
        return None
    return FirstLayer(flat, name, basis) if _exact(flat, name, probe) else None


def _first_called(flat: Flat, inputs: Inputs) -> tuple[str, int] | None:
    """Name, and output entries per sample, of the first plain linear or convolutional layer, if it is called once."""
    seen = trace_calls(flat, inputs)
    calls, first = seen.calls, next((call for call in seen.calls if _is_plain(call, flat)), None)
    if first is None or not (seen.fixed and first.free) or sum(call.layer is first.layer for call in calls) > 1:
        return None
    return first.name, first.output[0].numel()


def _is_plain(call: LayerCall, flat: Flat) -> bool:
    """Whether a layer is a plain linear or convolutional one with all of its parameters in theta."""
    prefix = f"{call.name}." if call.name else ""
    inside = {entry for entry, _ in flat.layout.parameters}
    return call.plain and all(prefix + name in inside for name, _ in call.layer.named_parameters())


def _exact(flat: Flat, name: str, probe: Samples) -> bool:
    """Whether sharing gives the outputs of the model on the `probe`: the layer has no second use by other ways."""
    inputs, plain = flat.cast(probe.inputs), flat.outputs(probe.inputs)
    noise = torch.randn(flat.theta.shape, generator=torch.Generator().manual_seed(0)).to(flat.theta)
    shared = FirstLayer(flat, name, torch.stack([flat.theta + noise, flat.theta - noise]))
    shared.at((0.5, 0.5), inputs)
    outputs = flat.outputs(inputs)
    shared.release()
    return bool(plain.isfinite().all()) and alike(outputs, plain)

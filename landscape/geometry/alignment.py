"""Permutation alignment: the hidden units of one model reordered so that it lies near another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.task import Task
from landscape.model.vectors import takes_models
from landscape.sweep.grid import stack_models
from landscape.sweep.layer_calls import trace_calls

PROBE = 8
"""Samples on which the aligned model must give the same outputs."""

SAME = 1e-6
"""Largest change of an output, relative to the largest output, that counts as rounding (float64)."""


@dataclass(frozen=True)
class StackLayer:
    """A linear or convolutional layer of a stack: where its weight (out, ...) and bias (out,) lie in theta."""

    name: str
    out: int
    weight: slice
    bias: slice | None


@takes_models("a", "b")
def align(task: Task, a: Tensor, b: Tensor, *, seed: int = 0, passes: int = 100) -> Tensor:
    """Model b (d,) with its hidden units in the order that brings it nearest to a; it computes the same function.

    One hidden layer after another gets the order that maximises the inner product of the aligned model with a, the
    others being fixed (a linear assignment problem), until a pass changes nothing. Biases count as further inputs.
    The paper starts from b itself; this function also starts from orders that are determined layer by layer from the
    input on, which recovers every reordered copy of a, and returns the better result. The order of layers is determined
    by running the model: every layer must receive the output of the previous one, through activations, pooling and
    flattening.

    Source: Ainsworth et al. 2023, section 3.2, algorithm 1 (weight matching).

    Args:
        task: Model, loss and samples.
        a, b: Models, shape (d,).
        seed: Of the order in which layers are visited.
        passes: At most this many visits of all layers.

    Raises:
        ValueError: If the model is not a stack of linear and convolutional layers (normalisation layers,
            skip connections, grouped convolutions), or the models differ in length.
    """
    a, b = stack_models([a, b], 2)
    layers = layer_stack(task)
    orders = find_orders(layers, a, b, seed=seed, passes=passes)
    aligned = permute(layers, b, orders)
    turned = permute(layers, b, [np.roll(order, index + 1) for index, order in enumerate(orders)])
    for other in (turned, aligned):  # `turned` reveals a skip connection even if the best order is the present one
        _check_same(task, b, other)
    return aligned


def layer_stack(task: Task) -> list[StackLayer]:
    """The linear and convolutional layers of a task's model, in the order in which they run.

    Raises:
        ValueError: If the model is not a plain stack of them; names the layer.
    """
    flat = task.flat(task.theta)
    _check_layers(flat)
    calls = trace_calls(flat, next(iter(task.samples.values()))[:1].inputs).calls
    for before, call in pairwise(calls):
        if call.inputs[0] is not before.output:
            raise ValueError(
                f"layer {call.name!r} does not take the output of the layer before it; alignment takes stacks "
                "in which every step is a module, such as nn.Sequential with nn.ReLU and nn.Flatten."
            )
    calls = [call for call in calls if isinstance(call.layer, nn.Linear | nn.Conv2d)]
    if len({call.layer for call in calls}) != len(calls):
        raise ValueError("a layer runs twice; alignment takes stacks that run every layer once.")
    spans = flat.layout.slices()
    layers = [_layer(call.name, call.layer, spans) for call in calls]
    if len(spans) != sum(1 if layer.bias is None else 2 for layer in layers):
        raise ValueError("the model holds parameters that it does not use; alignment cannot tell what they belong to.")
    return layers


def find_orders(layers: Sequence[StackLayer], a: Tensor, b: Tensor, *, seed: int, passes: int) -> list[np.ndarray]:
    """Orders of the hidden units, one (out,) for every layer but the last: unit i of the aligned layer is b's order[i].

    Args:
        layers: As `layer_stack` returns them.
        a, b: Models, shape (d,).
    """
    target, source = a.double(), b.double()
    plain = [np.arange(layer.out) for layer in layers[:-1]]
    forward = list(plain)  # by incoming weights only, from input to output: exact for a reordered copy
    for index, layer in enumerate(layers[:-1]):
        forward[index] = _best(_incoming(layer, target, permute(layers, source, forward)))
    starts = (plain, forward)
    candidates = [_climb(layers, target, source, start, seed, passes) for start in starts]
    return max(candidates, key=lambda orders: float(target @ permute(layers, source, orders)))


def permute(layers: Sequence[StackLayer], theta: Tensor, orders: Sequence[np.ndarray]) -> Tensor:
    """theta (d,) with the units of every hidden layer in the given order, and the inputs of the next layer likewise."""
    result = theta.clone()
    for index, order in enumerate(orders):
        layer, following = layers[index], layers[index + 1]
        units = torch.from_numpy(order).to(theta.device)
        for span in filter(None, (layer.weight, layer.bias)):
            result[span] = result[span].view(layer.out, -1)[units].flatten()
        read = result[following.weight].view(following.out, layer.out, -1)
        result[following.weight] = read[:, units].flatten()
    return result


def _climb(
    layers: Sequence[StackLayer], a: Tensor, b: Tensor, start: list[np.ndarray], seed: int, passes: int
) -> list[np.ndarray]:
    """Orders after visits of all layers in random sequence until none gets nearer to a."""
    orders, generator = list(start), np.random.default_rng(seed)
    for _ in range(passes):
        changed = False
        for index in generator.permutation(len(orders)):
            units, before = np.arange(len(orders[index])), orders[index]
            rest = permute(layers, b, [*orders[:index], units, *orders[index + 1 :]])  # all but this layer
            gain = _similarity(layers, a, rest, index)
            best = _best(gain)
            if float(gain[units, best].sum() - gain[units, before].sum()) > 1e-12 * float(gain.abs().max()):
                orders[index], changed = best, True
        if not changed:
            break
    return orders


def _best(gain: Tensor) -> np.ndarray:
    """The assignment (out,) of largest total gain (out, out)."""
    return linear_sum_assignment(gain.cpu().numpy(), maximize=True)[1]


def _incoming(layer: StackLayer, a: Tensor, b: Tensor) -> Tensor:
    """Inner products (out, out) of the weights and bias of unit i of a and unit j of b."""
    spans = [span for span in (layer.weight, layer.bias) if span is not None]
    return torch.stack([a[span].view(layer.out, -1) @ b[span].view(layer.out, -1).T for span in spans]).sum(0)


def _similarity(layers: Sequence[StackLayer], a: Tensor, b: Tensor, index: int) -> Tensor:
    """Inner products (out, out) of unit i of a and unit j of b: incoming weights, bias, outgoing weights."""
    layer, following = layers[index], layers[index + 1]
    ours, theirs = (
        model[following.weight].view(following.out, layer.out, -1).transpose(0, 1).flatten(1) for model in (a, b)
    )
    return _incoming(layer, a, b) + ours @ theirs.T


def _layer(name: str, module: nn.Module, spans: dict[str, slice]) -> StackLayer:
    prefix = f"{name}." if name else ""
    names = [prefix + parameter for parameter, _ in module.named_parameters()]
    if frozen := [parameter for parameter in names if parameter not in spans]:
        raise ValueError(f"parameter {frozen[0]!r} is frozen; alignment must be able to reorder all of them.")
    weight = module.get_parameter("weight")
    return StackLayer(name, len(weight), spans[prefix + "weight"], spans.get(prefix + "bias"))


def _check_layers(flat: Flat) -> None:
    """Refuse layers whose units cannot be reordered freely."""
    for name, module in flat.module.named_modules():
        if isinstance(module, nn.Conv2d) and module.groups > 1:
            raise ValueError(f"layer {name!r} is a convolution in {module.groups} groups; alignment takes groups = 1.")
        if list(module.parameters(recurse=False)) and type(module) not in (nn.Linear, nn.Conv2d):
            raise ValueError(
                f"layer {name!r} is a {type(module).__name__}; alignment reorders the units of linear and "
                "convolutional layers alone, and this layer would have to be reordered with them. Give models of those "
                "layers, or take landscape.barrier, which reorders nothing."
            )
    if flat.layout.buffers:
        raise ValueError(f"the model has a buffer {flat.layout.buffers[0][0]!r}; alignment reorders parameters only.")


def _check_same(task: Task, b: Tensor, aligned: Tensor) -> None:
    """Refuse a model whose outputs change by reordering: something between its layers mixes the units."""
    probe = next(iter(task.samples.values()))[:PROBE]
    before, after = (task.outputs(theta.double(), probe) for theta in (b, aligned))
    change = float((after - before).abs().max())
    if not change <= SAME * float(before.abs().max()):
        raise ValueError(
            f"reordering units changed the outputs by {change:.2g}; something between the layers mixes them, "
            "such as a skip connection. Alignment takes plain stacks."
        )

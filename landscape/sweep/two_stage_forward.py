"""A forward pass in two stages: most layers per small block of samples, the last dense layers for many samples.

The dense layers at the end have most weights of a convolutional model. If they are read for every small block of
samples, they push the images out of the cache, and their matrix products have few rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.samples import Inputs, Samples
from landscape.sweep.layer_calls import Call, layer_input, trace_calls
from landscape.sweep.onednn_layers import LEAST_WEIGHTS

ROWS = 256
"""Approximate number of samples per pass through the last layers."""

LEAST_BYTES = 2**20
"""Bytes of inputs of the last layers per point that are always acceptable, also for small models."""

_ENTRYWISE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Dropout, nn.Identity)


class Stages:
    """The model of `flat`, cut in front of its last layers.

    Args:
        first: The layers before, if the model is a plain chain of layers, which are then called directly; None: the
            module itself is called.
        last: The last layers; empty: the first stage returns the outputs.
    """

    def __init__(self, flat: Flat, first: Sequence[nn.Module] | None, last: Sequence[nn.Module]) -> None:
        self._flat = flat
        self._first = first
        self._last = last

    @property
    def cut(self) -> bool:
        """Whether there is a second stage."""
        return bool(self._last)

    @property
    def chain(self) -> Sequence[nn.Module]:
        """The layers of the first stage, if they are called one after the other without anything between."""
        return self._first or ()

    def first(self, inputs: Inputs) -> Tensor:
        """Inputs of the last layers (n, f) for n cast inputs; the outputs if there are no last layers."""
        if self._first is not None and isinstance(inputs, Tensor):
            return _through(self._first, inputs)
        return layer_input(self._flat, self._last[0], inputs) if self._last else self._flat.outputs(inputs)

    def last(self, entered: Tensor) -> Tensor:
        """Outputs of the model (n, C) from the inputs of the last layers (n, f)."""
        return _through(self._last, entered)


@torch.no_grad()
def split_stages(flat: Flat, probe: Samples) -> Stages:
    """The stages of a model, determined on the `probe`.

    The last layers are dense layers with entrywise functions between them, after layers with parameters in theta. The
    model is not cut if the stages do not return its outputs bit for bit.
    """
    whole = Stages(flat, None, [])
    seen = trace_calls(flat, probe.inputs)
    layers = [call.layer for call in seen.calls]
    if not seen.once or seen.written or not seen.fixed:
        return whole
    cut = len(layers) - len(_dense_end(flat, seen.calls, seen.output))
    plain = seen.chained and not flat.habits.copies and not any(call.hooked for call in seen.calls)
    cut_stages = Stages(flat, layers[:cut] if plain else None, layers[cut:])
    outputs = cut_stages.last(cut_stages.first(seen.inputs))
    return cut_stages if torch.equal(outputs, flat.outputs(probe.inputs)) else whole


def _through(layers: Sequence[nn.Module], value: Tensor) -> Tensor:
    for layer in layers:
        value = layer.forward(value)
    return value


def _dense_end(flat: Flat, calls: Sequence[Call], output: object) -> Sequence[Call]:
    """The last calls, from a dense layer on, that map each row of a matrix independently.

    Empty if they do little or all of the work, or if their inputs need more memory than the model.
    """
    start = len(calls)
    for place in reversed(range(len(calls))):
        call = calls[place]
        if call.output is not output or not _is_rowwise(call):
            break
        output = call.inputs[0]
        start = place if type(call.layer) is nn.Linear else start
    ended = calls[start:]
    weights = sum(call.layer.weight.numel() for call in ended if isinstance(call.layer, nn.Linear))
    if weights < LEAST_WEIGHTS or not any(_moves(call, flat) for call in calls[:start]):
        return []
    entered: Tensor = ended[0].inputs[0][0]
    return ended if ROWS * entered.nbytes <= max(LEAST_BYTES, flat.theta.nbytes) else []


def _is_rowwise(call: Call) -> bool:
    matrices = all(isinstance(value, Tensor) and value.ndim == 2 for value in (*call.inputs, call.output))
    return type(call.layer) in (nn.Linear, *_ENTRYWISE) and matrices and len(call.inputs) == 1 and not call.hooked


def _moves(call: Call, flat: Flat) -> bool:
    """Whether a layer has parameters in theta."""
    own = {f"{call.name}.{name}" for name, _ in call.layer.named_parameters()}
    return any(name in own for name, _ in flat.layout.parameters)

"""The layers that a model calls, in order, and the input of one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.hooks import hooked
from landscape.model.input_format import writes
from landscape.model.samples import Inputs, call_module, leaves
from landscape.model.value_watch import ValueWatch, address
from landscape.sweep.layer_forward import overridden


@dataclass(frozen=True)
class Call:
    """One call of a layer without sub-layers.

    `free` says whether what it receives was made of the inputs of the model alone, by functions that took neither a
    parameter nor a buffer: it is then the same at every model, for other samples too.
    """

    name: str
    layer: nn.Module
    inputs: tuple[Any, ...]
    output: Any
    free: bool

    @property
    def hooked(self) -> bool:
        """Whether the layer has hooks, so that a call does more than its forward."""
        return hooked(self.layer)


@dataclass(frozen=True)
class ForwardTrace:
    """A forward pass: the inputs of the model, the calls in order, and its output.

    `written` says whether a function between layers wrote to a tensor, which may show on other samples only. `fixed`
    says whether the calls do not depend on values: no value was read into Python, no parameter written to.
    """

    inputs: Inputs
    calls: list[Call]
    output: Any
    written: bool
    fixed: bool

    @property
    def once(self) -> bool:
        """Whether no layer is called twice."""
        return len({id(call.layer) for call in self.calls}) == len(self.calls)

    @property
    def chained(self) -> bool:
        """Whether the calls form a chain from inputs to output: each layer receives the output of the previous one."""
        value: Any = self.inputs
        for call in self.calls:
            if len(call.inputs) != 1 or call.inputs[0] is not value:
                return False
            value = call.output
        return value is self.output and not self.written and self.fixed


@torch.no_grad()
def trace_calls(flat: Flat, inputs: Inputs) -> ForwardTrace:
    """Record the layer calls of a forward pass of `flat`; the model does not change."""
    calls, states, written, free = list[Call](), dict[int, object](), list[bool](), False
    names = {layer: name for name, layer in flat.module.named_modules() if not list(layer.children())}

    def note(values: Iterable[Any]) -> None:
        states.update({id(value): writes(value) for value in values if isinstance(value, Tensor)})

    def enter(layer: nn.Module, received: tuple[Any, ...]) -> None:
        nonlocal free
        free = watch.follows(received)
        written.extend(states[id(value)] != writes(value) for value in received if id(value) in states)
        written.extend(address(value) in watch.wrote for value in received if isinstance(value, Tensor))

    def leave(layer: nn.Module, received: tuple[Any, ...], output: Any) -> None:
        watch.wrote.clear()
        calls.append(Call(names[layer], layer, received, output, free))
        note((*received, output))

    cast_inputs = flat.cast(inputs)
    watch = ValueWatch(flat.theta, cast_inputs)
    note(leaves(cast_inputs))
    handles = [layer.register_forward_pre_hook(enter) for layer in names]
    handles += [layer.register_forward_hook(leave) for layer in names]
    try:
        with watch:
            output = call_module(flat.module, cast_inputs)
    finally:
        for handle in handles:
            handle.remove()
    enter(flat.module, (output,))
    return ForwardTrace(cast_inputs, calls, output, any(written), watch.fixed)


def layer_input(flat: Flat, layer: nn.Module, inputs: Inputs) -> Tensor:
    """Input of a layer of `flat`; the forward pass ends there.

    Raises:
        RuntimeError: If the layer is not called.
    """
    with overridden(layer, _stop):
        try:
            flat.outputs(inputs)
        except _Reached as reached:
            return reached.received
    raise RuntimeError("the layer was not reached")


class _Reached(Exception):
    """Ends a forward pass and carries the input of the layer that was reached."""

    def __init__(self, received: Tensor) -> None:
        self.received = received


def _stop(received: Tensor) -> NoReturn:
    raise _Reached(received)

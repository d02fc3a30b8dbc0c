"""The layers that a model calls, in order, and the input of one of them."""

from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.hooks import hooked
from landscape.model.samples import Inputs, call_module
from landscape.model.value_watch import ValueWatch


@dataclass(frozen=True)
class LayerCall:
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
    def plain(self) -> bool:
        """Whether the layer is exactly a linear or convolutional one, called by position, without hooks or a forward of
        its own."""
        overridden = "forward" in vars(self.layer) or len(self.inputs) != 1
        return type(self.layer) in (nn.Linear, nn.Conv2d) and not overridden and not hooked(self.layer)


@dataclass(frozen=True)
class ForwardTrace:
    """The layer calls of a forward pass, in order.

    `fixed` says whether they do not depend on values: no value was read into Python, no parameter written to.
    """

    calls: list[LayerCall]
    fixed: bool


@torch.no_grad()
def trace_calls(flat: Flat, inputs: Inputs) -> ForwardTrace:
    """Record the layer calls of a forward pass of `flat`; the model does not change."""
    calls, free = list[LayerCall](), False
    names = {layer: name for name, layer in flat.module.named_modules() if not list(layer.children())}
    cast_inputs = flat.cast(inputs)
    watch = ValueWatch(flat.theta, cast_inputs)

    def enter(layer: nn.Module, received: tuple[Any, ...]) -> None:
        nonlocal free
        free = watch.follows(received)

    def leave(layer: nn.Module, received: tuple[Any, ...], output: Any) -> None:
        calls.append(LayerCall(names[layer], layer, received, output, free))

    handles = [layer.register_forward_pre_hook(enter) for layer in names]
    handles += [layer.register_forward_hook(leave) for layer in names]
    try:
        with watch:
            call_module(flat.module, cast_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return ForwardTrace(calls, watch.fixed)


def layer_input(flat: Flat, layer: nn.Module, inputs: Inputs) -> Tensor:
    """Input of a layer of `flat`; the forward pass ends there.

    Raises:
        RuntimeError: If the layer is not called.
    """
    hook = layer.register_forward_pre_hook(_stop)
    try:
        flat.outputs(inputs)
    except _Reached as reached:
        return reached.received
    finally:
        hook.remove()
    raise RuntimeError("the layer was not reached")


class _Reached(Exception):
    """Ends a forward pass and carries the input of the layer that was reached."""

    def __init__(self, received: Tensor) -> None:
        self.received = received


def _stop(layer: nn.Module, received: tuple[Tensor, ...]) -> NoReturn:
    raise _Reached(received[0])

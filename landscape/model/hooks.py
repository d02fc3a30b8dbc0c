"""Outputs of the layers of a module in a pass; whether a layer has hooks, which torch has no public way to ask."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from torch import Tensor, nn

from landscape.probe import probed

Result = TypeVar("Result")


def observed(module: nn.Module, run: Callable[[], Result], note: Callable[[str, nn.Module, Tensor], object]) -> Result:
    """What `run` returns; `note(name, layer, output)` is called with each tensor that a layer returns meanwhile."""

    def hook(name: str, layer: nn.Module, received: object, output: object) -> None:
        if isinstance(output, Tensor):
            note(name, layer, output)

    handles = [layer.register_forward_hook(partial(hook, name)) for name, layer in module.named_modules()]
    try:
        return run()
    finally:
        for handle in handles:
            handle.remove()


def _sees_hooks(hooked: Callable[[nn.Module], bool]) -> bool:
    none, before, after = nn.Identity(), nn.Identity(), nn.Identity()
    before.register_forward_pre_hook(lambda *_: None)
    after.register_forward_hook(lambda *_: None)
    return hooked(before) and hooked(after) and not hooked(none)


@probed(lambda layer: True, _sees_hooks)  # else assumed, so that code that asks takes the plain way
def hooked(layer: nn.Module) -> bool:
    """Whether a layer has forward hooks."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks)

"""Whether a layer has hooks, so that a call does more than its forward; torch has no public way to ask."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from landscape.probe import probed


def _assumed(layer: nn.Module) -> bool:
    """Yes: code that asks then takes the plain way."""
    return True


def _sees_hooks(hooked: Callable[[nn.Module], bool]) -> bool:
    none, before, after = nn.Identity(), nn.Identity(), nn.Identity()
    before.register_forward_pre_hook(lambda *_: None)
    after.register_forward_hook(lambda *_: None)
    return hooked(before) and hooked(after) and not hooked(none)


@probed(_assumed, _sees_hooks)
def hooked(layer: nn.Module) -> bool:
    """Whether a layer has forward hooks."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks)
